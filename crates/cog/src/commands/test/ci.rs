//! The report for a build service: as JUnit XML, one `testsuite` for each module or column and one `testcase` for each golden
//! test; or as annotations of GitHub Actions, one per failed case and the summary.

use std::fmt::{self, Write};

use cog_module::golden::Mismatch;

use super::report::{CaseReport, Report, Suite, Verdict};
use crate::{commands::emit::Annotation, output::Escaped};

/// Formats the report. A case that no model answered or judged is reported as skipped.
pub(super) fn junit(report: &Report) -> String {
    let mut xml = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut xml, report);
    xml
}

fn write_report(xml: &mut String, report: &Report) -> fmt::Result {
    let mut total = Counts::default();
    for suite in &report.suites {
        total.add(&Counts::of(suite));
    }
    writeln!(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(xml, "<testsuites name=\"cog test\" {total}>")?;
    for suite in &report.suites {
        let title = suite.title();
        writeln!(xml, "  <testsuite name=\"{}\" {}>", Escaped(&title), Counts::of(suite))?;
        match &suite.cases {
            Ok(cases) => cases.iter().try_for_each(|case| write_case(xml, &title, case))?,
            Err(error) => {
                writeln!(xml, "    <testcase name=\"load\" classname=\"{}\">", Escaped(&title))?;
                let message = Escaped(&error.message);
                writeln!(
                    xml,
                    "      <error message=\"{message}\" type=\"{}\"/>",
                    Escaped(error.code.as_str())
                )?;
                writeln!(xml, "    </testcase>")?;
            }
        }
        writeln!(xml, "  </testsuite>")?;
    }
    writeln!(xml, "</testsuites>")
}

fn write_case(xml: &mut String, class: &str, case: &CaseReport) -> fmt::Result {
    write!(xml, "    <testcase name=\"{}\" classname=\"{}\"", Escaped(&case.name), Escaped(class))?;
    if let Some(figures) = case.figures() {
        write!(xml, " time=\"{}.{:03}\"", figures.time_ms / 1_000, figures.time_ms % 1_000)?;
    }
    let verdict = case.verdict();
    match verdict {
        Verdict::Passed | Verdict::Updated => return writeln!(xml, "/>"),
        Verdict::Failed(mismatches) => write_failure(xml, mismatches)?,
        Verdict::ContractOnly | Verdict::NotJudged => {
            write!(xml, ">\n      <skipped message=\"{}\"/>\n", verdict.as_str())?;
        }
    }
    writeln!(xml, "    </testcase>")
}

fn write_failure(xml: &mut String, mismatches: &[Mismatch]) -> fmt::Result {
    let lines: Vec<_> = mismatches.iter().map(|found| format!("{}: {}", found.path, found.message)).collect();
    let rule = mismatches.first().map_or("", |found| found.rule.as_str());
    let first = lines.first().map_or("", String::as_str);
    write!(xml, ">\n      <failure message=\"{}\" type=\"{}\">", Escaped(first), Escaped(rule))?;
    writeln!(xml, "{}</failure>", Escaped(&lines.join("\n")))
}

/// The attributes of a suite, and of all of them.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    fn of(suite: &Suite) -> Self {
        let Ok(cases) = &suite.cases else { return Self { tests: 1, errors: 1, ..Self::default() } };
        let mut counts = Self { tests: cases.len(), ..Self::default() };
        for case in cases {
            match case.verdict() {
                Verdict::Passed | Verdict::Updated => {}
                Verdict::Failed(_) => counts.failures += 1,
                Verdict::ContractOnly | Verdict::NotJudged => counts.skipped += 1,
            }
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, failures, errors, skipped } = self;
        write!(f, r#"tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}""#)
    }
}

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
