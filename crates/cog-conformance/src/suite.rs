//! The cases in a directory `conformance/`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cog_spec::Form;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    base::{Base, expanded},
    case::Case,
    directory, forms,
    server::Programs,
};

/// The cases in `conformance/cases` of a checkout, by their names: `O/exec-refuses-below-0.9`.
#[derive(Debug)]
pub struct Suite {
    root: PathBuf,
    base: Base,
    cases: BTreeMap<String, Case>,
    /// The reasons why cases fail, by their names.
    known_failures: BTreeMap<String, String>,
}

impl Suite {
    /// Reads the cases of a checkout. `root` is the directory that contains `conformance/`; cases also copy and read other files
    /// of it.
    ///
    /// # Errors
    /// The path of a file that cannot be read, and the reason.
    pub fn read(root: &Path) -> Result<Self, String> {
        let directory = root.join("conformance");
        let mut cases = BTreeMap::new();
        for path in files(&directory.join("cases"))? {
            let group = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for case in read::<Vec<Value>>(&path)? {
                let case: Case =
                    serde_json::from_value(expanded(case)).map_err(|error| format!("{group}: {error}"))?;
                let name = format!("{group}/{}", case.name);
                if cases.insert(name.clone(), case).is_some() {
                    return Err(format!("{name}: two cases have this name"));
                }
            }
        }
        Ok(Self {
            root: root.to_owned(),
            base: read(&directory.join("base.json"))?,
            cases,
            known_failures: read(&directory.join("known-failures.json"))?,
        })
    }

    /// Returns the names of all cases, and of known failures without a case.
    pub fn names(&self) -> Vec<String> {
        let strays = self.known_failures.keys().filter(|name| !self.cases.contains_key(*name));
        self.cases.keys().chain(strays).cloned().collect()
    }

    /// Returns the cases that can be run with models that are asked in a form (ruling R91), by their names.
    pub fn names_in_form(&self, form: &Form) -> Vec<String> {
        let cases = self.cases.iter().filter(|(name, case)| forms::applies(name, case, form));
        cases.map(|(name, _)| name.clone()).collect()
    }

    /// Runs a case with models that are asked in a form. What leaves must be the same, except for what such a model does not state.
    ///
    /// # Errors
    /// Everything that differs.
    pub fn check_in_form(&self, name: &str, form: &'static Form, programs: &Programs) -> Result<(), String> {
        let case = self.cases.get(name).ok_or("there is no such case")?;
        forms::expecting(case, form).check_in(Some(form), &self.base, &self.root, programs)
    }

    /// Runs a case in a directory of its own.
    ///
    /// # Errors
    /// Everything that differs from what the case expects. A case that is known to fail must fail.
    pub fn check(&self, name: &str, programs: &Programs) -> Result<(), String> {
        let Some(case) = self.cases.get(name) else {
            return Err("listed as known to fail, but there is no such case".to_owned());
        };
        match (case.check(&self.base, &self.root, programs), self.known_failures.get(name)) {
            (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
            (Err(differences), None) => Err(differences),
            (Ok(()), Some(reason)) => {
                Err(format!("passes, but is listed in conformance/known-failures.json: {reason}"))
            }
        }
    }
}

/// Returns the JSON files of a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = directory::list(directory)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    Ok(files)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = directory::read(path)?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
