//! The report as annotations of GitHub Actions: one per failed case, and the summary.

use cog_module::golden::Mismatch;

use super::report::{CaseReport, Report, Suite, Verdict};
use crate::commands::annotation::Annotation;

/// Formats one line per failure, then the summary.
pub(super) fn annotations(report: &Report) -> String {
    let summary = report.summary();
    let summary =
        Annotation { level: "notice", file: None, range: None, title: "cog test", message: &summary };
    let failures: String = report.suites.iter().map(|suite| of_suite(report, suite)).collect();
    format!("{failures}{summary}\n")
}

fn of_suite(report: &Report, suite: &Suite) -> String {
    let title = suite.title();
    let of_module = |message: &str| {
        format!("{}\n", Annotation { level: "error", file: None, range: None, title: &title, message })
    };
    match &suite.cases {
        Err(error) => of_module(&error.message),
        Ok(_) if suite.is_empty() && report.requires_tests => of_module("no golden tests"),
        Ok(cases) => cases.iter().filter_map(|case| of_case(report, &title, case)).collect(),
    }
}

fn of_case(report: &Report, suite: &str, case: &CaseReport) -> Option<String> {
    let message = match case.verdict() {
        Verdict::Failed(mismatches) => mismatches.iter().map(line).collect::<Vec<_>>().join("\n"),
        verdict @ (Verdict::ContractOnly | Verdict::NotJudged) if report.requires_model => {
            format!("{}, and --require-model is set", verdict.as_str())
        }
        _ => return None,
    };
    let title = format!("{suite} {}", case.name);
    let file = Some(case.file.as_path());
    let annotation = Annotation { level: "error", file, range: None, title: &title, message: &message };
    Some(format!("{annotation}\n"))
}

fn line(Mismatch { path, message, .. }: &Mismatch) -> String {
    if path.is_empty() { message.clone() } else { format!("{path}: {message}") }
}
