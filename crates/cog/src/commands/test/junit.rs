//! The report as JUnit XML.

use std::{io, time::Duration};

use cog_module::golden::Mismatch;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::report::{CaseReport, Report, Suite, Verdict};

/// Formats the report. A case that no model answered or judged is reported as skipped.
pub(super) fn xml(report: &Report) -> io::Result<String> {
    let mut xml = quick_junit::Report::new("cog test");
    xml.add_test_suites(report.suites.iter().map(suite));
    xml.to_string().map_err(io::Error::other)
}

fn suite(suite: &Suite) -> TestSuite {
    let mut xml = TestSuite::new(suite.title().as_str());
    match &suite.cases {
        Ok(cases) => {
            xml.add_test_cases(cases.iter().map(|one| case(one).set_classname(suite.title()).to_owned()));
        }
        Err(error) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type(error.code.as_str()).set_message(error.message.as_str());
            xml.add_test_case(TestCase::new("load", status));
        }
    }
    xml
}

fn case(case: &CaseReport) -> TestCase {
    let status = match case.verdict() {
        Verdict::Passed | Verdict::Updated => TestCaseStatus::success(),
        Verdict::Failed(mismatches) => failure(mismatches),
        verdict @ (Verdict::ContractOnly | Verdict::NotJudged) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(verdict.as_str());
            status
        }
    };
    let mut xml = TestCase::new(case.name.as_str(), status);
    if let Some(figures) = case.figures() {
        xml.set_time(Duration::from_millis(figures.time_ms));
    }
    xml
}

fn failure(mismatches: &[Mismatch]) -> TestCaseStatus {
    let lines: Vec<_> = mismatches.iter().map(|found| format!("{}: {}", found.path, found.message)).collect();
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    if let Some(first) = mismatches.first() {
        status.set_type(first.rule.as_str()).set_message(lines.first().map_or("", String::as_str));
    }
    status.set_description(lines.join("\n"));
    status
}
