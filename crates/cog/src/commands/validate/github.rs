//! The findings as annotations of GitHub Actions.

use cog_module::{Diagnostic, Report};

use super::span::span;
use crate::commands::annotation::Annotation;

/// Formats one line per finding.
pub(super) fn annotations(reports: &[Report]) -> String {
    reports.iter().flat_map(|report| &report.diagnostics).map(annotation).collect()
}

fn annotation(found: &Diagnostic) -> String {
    let help = found.suggestion.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let annotation = Annotation {
        level: found.severity.as_str(),
        file: Some(&found.file),
        range: span(found),
        title: found.rule.as_str(),
        message: &format!("{}{help}", found.message),
    };
    format!("{annotation}\n")
}
