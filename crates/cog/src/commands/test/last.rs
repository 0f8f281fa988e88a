//! `--failed`: the cases that failed when the modules were last tested, in the user's state directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_module::{Module, Origin, files};

use super::report::{Report, Verdict};
use crate::output::Console;

/// The maximum size of the file.
const MAX_FILE: u64 = 8 << 20;

/// The cases that failed, of each module that was tested.
#[derive(Debug, Clone, Default)]
pub(super) struct LastFailed {
    file: PathBuf,
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl LastFailed {
    /// Reads the file of a state directory. A file that is missing or damaged knows of no test.
    pub(super) fn read(state: Option<&Path>) -> Option<Self> {
        let file = state?.join("tests").join("failed.json");
        let text = files::read_text(&file, MAX_FILE).unwrap_or_default();
        let modules = serde_json::from_str(&text).unwrap_or_default();
        Some(Self { file, modules })
    }

    /// Whether a case failed last. The cases of a module that was never tested have not passed.
    pub(super) fn has_failed(&self, module: &Module, case: &str) -> bool {
        self.modules.get(&key(module)).is_none_or(|failed| failed.contains(case))
    }

    /// Stores what a report says. Cases that were not run, or that no model answered, stay as they are.
    pub(super) fn update(mut self, modules: &[(String, Arc<Module>)], report: &Report, console: &Console) {
        let mut is_changed = false;
        for (name, module) in modules {
            let suites = report.suites.iter().filter(|suite| suite.module == *name);
            let cases: Vec<_> = suites.flat_map(|suite| suite.cases.iter().flatten()).collect();
            let is_failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_) | Verdict::Error(_));
            if !cases.iter().any(|case| is_failed(case.verdict()) || case.verdict().is_passed()) {
                continue;
            }
            let before = self.modules.get(&key(module)).cloned();
            let failed = self.modules.entry(key(module)).or_default();
            for case in cases.iter().filter(|case| case.verdict().is_passed()) {
                failed.remove(&case.name);
            }
            // A case that fails on one of several models has failed.
            failed
                .extend(cases.iter().filter(|case| is_failed(case.verdict())).map(|case| case.name.clone()));
            is_changed |= before.as_ref() != Some(failed);
        }
        if is_changed && let Err(reason) = self.write() {
            console.note(&format!("cannot store which cases failed, for --failed: {reason}"));
        }
    }

    fn write(&self) -> Result<(), files::FileError> {
        if let Some(directory) = self.file.parent() {
            files::create_directory(directory)?;
        }
        files::write_atomic(&self.file, serde_json::to_string(&self.modules).unwrap_or_default())
    }
}

/// Returns what identifies a module: its directory, or its name if it is built in.
fn key(module: &Module) -> String {
    match &module.origin {
        Origin::Directory(directory) => {
            directory.canonicalize().unwrap_or_else(|_| directory.clone()).display().to_string()
        }
        _ => format!("built-in {}", module.manifest.name),
    }
}
