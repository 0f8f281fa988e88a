//! `cargo xtask mutants [PACKAGE] [FILE]`: changes the code of the pure crates in small ways, and fails where no test notices.
//!
//! The survivors that are accepted are listed in `xtask/mutants.toml`, each with a reason. One that is listed and does not
//! survive any more fails too.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::project::{Outcome, cargo, execute, read, root, say};

/// The crates without input and output, whose tests show everything that they do.
const PACKAGES: &[&str] = &["cog-json", "cog-spec", "cog-schema", "cog-harmony", "cog-answer"];

const VERSION: &str = "27.1.0";

const ACCEPTED: &str = "xtask/mutants.toml";

/// Exit codes of cargo-mutants for a run that came to its end: all caught, some missed, some timed out.
const FINISHED: [i32; 3] = [0, 2, 3];

/// Runs cargo-mutants on every package, or on one, or on the files of one that match a pattern.
pub(crate) fn run(package: Option<&str>, file: Option<&str>) -> Outcome {
    let accepted = accepted()?;
    let tool = install()?;
    let packages = package.map_or_else(|| PACKAGES.to_vec(), |package| vec![package]);
    let problems: Vec<String> = packages
        .into_iter()
        .map(|package| {
            let missed = missed(&tool, package, file)?;
            Ok(differences(&missed, &accepted, file.is_none().then_some(package)))
        })
        .collect::<Outcome<Vec<_>>>()?
        .concat();
    match problems.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("{}\ntest these, or list them in {ACCEPTED} with a reason", problems.join("\n")))
        }
    }
}

/// The survivors of one package.
fn missed(tool: &Path, package: &str, file: Option<&str>) -> Outcome<BTreeSet<String>> {
    let output = root().join("target/mutants").join(package);
    let mut command = Command::new(tool);
    command
        .args(["mutants", "--all-features", "--package", package, "--no-shuffle", "--output"])
        .arg(&output);
    command.args(file.iter().flat_map(|file| ["--file", file]));
    say(format_args!("mutants: {package}"));
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let status = command.current_dir(root()).status().map_err(|error| error.to_string())?;
    if !status.code().is_some_and(|code| FINISHED.contains(&code)) {
        return Err(format!("cargo-mutants failed on {package}: {status}"));
    }
    Ok(survivors(&read(output.join("mutants.out/missed.txt"))?))
}

/// The names of the mutants in a list of cargo-mutants, without the lines and columns, which move.
fn survivors(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(survivor).collect()
}

fn survivor(line: &str) -> Option<String> {
    let mut parts = line.splitn(4, ':');
    let path = parts.next()?;
    let name = parts.nth(2)?;
    Some(format!("{path}:{name}"))
}

/// What the list of accepted survivors does not say of those `found`; with the package whose mutants were all tried also
/// what it says too much.
fn differences(found: &BTreeSet<String>, accepted: &BTreeSet<String>, complete: Option<&str>) -> Vec<String> {
    let is_tried =
        |name: &&String| complete.is_some_and(|package| name.starts_with(&format!("crates/{package}/")));
    let new = found.difference(accepted).map(|name| format!("survives: {name}"));
    let stale = accepted.difference(found).filter(is_tried).map(|name| format!("listed, but caught: {name}"));
    new.chain(stale).collect()
}

/// The survivors that are accepted.
fn accepted() -> Outcome<BTreeSet<String>> {
    let table: Table = toml::from_str(&read(ACCEPTED)?).map_err(|error| format!("{ACCEPTED}: {error}"))?;
    let listed = table.get("accepted").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(listed.iter().map(names_with_reason).collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The names in an entry of the list. Each entry needs a reason.
fn names_with_reason(entry: &Value) -> Outcome<Vec<String>> {
    let names = entry.get("mutants").and_then(Value::as_array);
    let names: Option<Vec<String>> = names.and_then(|names| names.iter().map(text).collect());
    match (names, entry.get("reason").and_then(text)) {
        (Some(names), Some(_)) if !names.is_empty() => Ok(names),
        _ => Err(format!("{ACCEPTED}: an entry needs `mutants`, a list of names, and `reason`: {entry:?}")),
    }
}

/// The pinned cargo-mutants under `target/tools/`.
fn install() -> Outcome<PathBuf> {
    let directory = root().join("target/tools").join(format!("cargo-mutants-{VERSION}"));
    let program = directory.join("bin/cargo-mutants");
    match std::fs::metadata(&program) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let install = ["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"];
            execute(cargo().args(install).arg(directory))?;
        }
        _ => {}
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn name_of_a_survivor_does_not_depend_on_its_line() {
        let text = "crates/a/src/x.rs:12:5: replace f -> bool with true\ncrates/a/src/x.rs:40:9: replace == with != in g::h\n";
        let expected = [
            "crates/a/src/x.rs: replace == with != in g::h",
            "crates/a/src/x.rs: replace f -> bool with true",
        ];
        assert_eq!(survivors(text), set(&expected));
    }

    #[test]
    fn reports_new_survivors_and_entries_that_are_caught() {
        let found = set(&["crates/a/x: one"]);
        let accepted = set(&["crates/a/x: two", "crates/b/x: three"]);
        let new = "survives: crates/a/x: one".to_owned();
        assert_eq!(differences(&found, &accepted, None), std::slice::from_ref(&new));
        assert_eq!(
            differences(&found, &accepted, Some("a")),
            [new, "listed, but caught: crates/a/x: two".to_owned()]
        );
    }

    #[test]
    fn each_entry_of_the_list_has_a_reason() {
        accepted().unwrap();
        let names = |entry: &str| names_with_reason(&Value::Table(toml::from_str(entry).unwrap()));
        assert_eq!(names("mutants = ['one', 'two']\nreason = 'equal'"), Ok(vec!["one".into(), "two".into()]));
        for entry in [
            "",
            "mutants = ['one']",
            "mutants = []\nreason = 'r'",
            "mutants = [1]\nreason = 'r'",
            "reason = 'r'",
        ] {
            assert!(names(entry).is_err(), "{entry}");
        }
    }
}
