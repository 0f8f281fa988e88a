//! Validates modules and what they call.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use cog_flow::Finding;
use cog_module::{Diagnostic, Finder, Level, Origin, Report};

/// Checks the files of each module, and the modules that it calls. The reports have the order of the modules.
pub fn validate<'a>(
    modules: impl IntoIterator<Item = &'a Origin>,
    level: Level,
    finder: &Finder,
) -> Vec<Report> {
    let mut reports: Vec<_> = modules.into_iter().map(|origin| cog_module::validate(origin, level)).collect();
    check_compositions(&mut reports, finder);
    reports
}

/// Checks the composition of each module. A finding is added once: to the report of the module that it is about, or to the
/// report of the caller if that module is not validated.
fn check_compositions(reports: &mut [Report], finder: &Finder) {
    let of_module: HashMap<PathBuf, usize> =
        reports.iter().enumerate().map(|(index, report)| (path(&report.origin), index)).collect();
    // By index: a finding may belong to another report than the one that is checked.
    for index in 0..reports.len() {
        let module = reports.get(index).and_then(|report| report.module.clone());
        let findings = module.map(|module| cog_flow::check(Arc::new(module), finder).findings);
        for finding in findings.into_iter().flatten() {
            let owner = owner(&finding, &of_module).unwrap_or(index);
            if let Some(report) = reports.get_mut(owner) {
                add(&mut report.diagnostics, finding.diagnostic());
            }
        }
    }
}

/// Returns the report of the module that a finding is about.
fn owner(finding: &Finding, of_module: &HashMap<PathBuf, usize>) -> Option<usize> {
    of_module.get(&path(&finding.module()?.origin)).copied()
}

/// Adds a diagnostic that is not in the list. Its file may have another path there, the one of the argument.
fn add(diagnostics: &mut Vec<Diagnostic>, found: Diagnostic) {
    let is_known = diagnostics.iter().any(|other| {
        (other.rule, &other.message, &other.location) == (found.rule, &found.message, &found.location)
    });
    if !is_known {
        diagnostics.push(found);
    }
}

/// Returns the path of a module, the same for each way to write it.
fn path(origin: &Origin) -> PathBuf {
    let path = origin.path_of("");
    path.canonicalize().unwrap_or(path)
}
