//! The conformance cases, one named test each: `cargo test -p cog --test conformance`.
//!
//! `conformance/cases/GROUP.json` holds the cases of one group of the specification's checklist, as data. A case makes a
//! folder, runs the `cog` binary in it, with a scripted model behind it where the case has a reply, and compares what
//! comes out. docs/conformance-cases.md describes the form.

mod case;
mod folder;
mod matching;
mod model;
mod step;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

use case::{Base, Case};

fn main() {
    let root = root();
    let base: Base = read(&root.join("conformance/base.json"));
    let mut failing: BTreeMap<String, String> = read(&root.join("conformance/known-failures.json"));
    let mut trials = Vec::new();
    for (group, path) in files(&root.join("conformance/cases")) {
        for case in read::<Vec<Case>>(&path) {
            let name = format!("{group}/{}", case.name);
            let reason = failing.remove(&name);
            let (base, root) = (base.clone(), root.clone());
            trials.push(Trial::test(name, move || judge(&case, reason, &base, &root)));
        }
    }
    for name in failing.into_keys() {
        trials.push(Trial::test(name, || Err(Failed::from("listed as known to fail, but there is no such case"))));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A case must pass, unless it is known to fail: then it must fail.
fn judge(case: &Case, known_to_fail: Option<String>, base: &Base, root: &Path) -> Result<(), Failed> {
    match (case.check(base, root), known_to_fail) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Err(faults), None) => Err(Failed::from(faults)),
        (Ok(()), Some(reason)) => {
            Err(Failed::from(format!("passes, but is listed in conformance/known-failures.json: {reason}")))
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace has a root")
}

/// The case files, by the name of their group.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = folder.read_dir().expect("conformance/cases is a folder");
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    paths
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "json"))
        .map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path))
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "the cases are files of this workspace")]
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
