//! The conformance cases, one named test each: `cargo test -p cogn --test conformance`.
//!
//! `conformance/cases/GROUP.json` holds the cases of one group of the specification's checklist, as data. A case makes a
//! directory, runs the `cog` binary in it, with a scripted model behind it where the case has a reply, and compares what
//! comes out. docs/conformance-cases.md describes the form.

mod case;
mod directory;
mod http;
mod lines;
mod model;
mod outcome;
mod scene;
mod server;
mod site;
mod socket;
mod step;

// The forms of cases that `cog conformance` reads too.
#[path = "../../src/commands/conformance/chunks.rs"]
mod chunks;
#[path = "../../src/commands/conformance/expect.rs"]
mod expect;
#[path = "../../src/commands/conformance/matching.rs"]
mod matching;
#[path = "../../src/commands/conformance/parts.rs"]
mod parts;
#[path = "../../src/commands/conformance/reply.rs"]
mod reply;
#[path = "../../src/commands/conformance/shorthand.rs"]
mod shorthand;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use serde::de::DeserializeOwned;
use serde_json::Value;

use case::Case;
use parts::Base;

fn main() -> Result<ExitCode, String> {
    let arguments = Arguments::from_args();
    Ok(libtest_mimic::run(&arguments, trials()?).exit_code())
}

/// One trial for each case, and one for each entry of the known failures that has none.
fn trials() -> Result<Vec<Trial>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let base: Base = read(&root.join("conformance/base.json"))?;
    let mut failing: BTreeMap<String, String> = read(&root.join("conformance/known-failures.json"))?;
    let mut trials = Vec::new();
    for (group, path) in files(&root.join("conformance/cases"))? {
        for case in read::<Vec<Value>>(&path)? {
            let case: Case = serde_json::from_value(shorthand::expanded(case))
                .map_err(|error| format!("{group}: {error}"))?;
            let name = format!("{group}/{}", case.name);
            let reason = failing.remove(&name);
            let (base, root) = (base.clone(), root.clone());
            trials.push(Trial::test(name, move || judge(&case, reason, &base, &root)));
        }
    }
    let strays = failing.into_keys().map(|name| {
        Trial::test(name, || Err(Failed::from("listed as known to fail, but there is no such case")))
    });
    trials.extend(strays);
    Ok(trials)
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

/// The case files, by the name of their group.
fn files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let fault = |error| format!("{}: {error}", directory.display());
    let mut files = BTreeMap::new();
    for entry in directory.read_dir().map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if let (Some(group), Some("json")) =
            (stem(&path), path.extension().and_then(|suffix| suffix.to_str()))
        {
            files.insert(group, path);
        }
    }
    Ok(files)
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem().map(|name| name.to_string_lossy().into_owned())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = directory::read(path)?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
