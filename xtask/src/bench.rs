//! `cargo xtask bench`: the benchmarks, beside the peers that they are compared to. What counts is the ratios of one run.

pub(crate) mod answers;
pub(crate) mod batch;
pub(crate) mod commands;
pub(crate) mod insights;
pub(crate) mod trust;

use std::process::Command;

use crate::project::{Outcome, cargo, execute, root, tracked};
use crate::{python as package, test::python};

/// Runs every benchmark of the workspace but that of the server under load, then each peer script with the tools it
/// needs, then whole commands, the Python package, and batches beside other programs.
pub(crate) fn run() -> Outcome {
    execute(cargo().args(["bench", "--workspace", "--exclude", "cogn", "--locked", "--no-fail-fast"]))?;
    for script in peers(".py")? {
        let interpreter = python(&["orjson", "jsonschema-rs"])?;
        execute(Command::new(interpreter).arg(&script))?;
    }
    for script in peers(".mjs")? {
        let directory = root().join("target/tools/node");
        execute(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&directory).arg("ajv"))?;
        execute(Command::new("node").arg(&script).env("NODE_PATH", directory.join("node_modules")))?;
    }
    commands::run()?;
    insights::run()?;
    package::bench()?;
    batch::run()
}

/// Puts `cog serve` under load; only the scenarios whose name holds this word.
pub(crate) fn load(word: &str) -> Outcome {
    execute(cargo().args(["bench", "--package", "cogn", "--bench", "load", "--locked", "--", word]))
}

/// The time that the hostile clients have, in seconds.
pub(crate) const SIEGE: &str = "10";

/// Puts `cog serve` under siege for so many seconds.
pub(crate) fn siege(seconds: &str) -> Outcome {
    execute(cargo().args([
        "bench",
        "--package",
        "cogn",
        "--bench",
        "load",
        "--locked",
        "--",
        "siege",
        seconds,
    ]))
}

/// The same for a machine that does other work at the same time: nothing that takes time is compared.
pub(crate) fn untimed_siege() -> Outcome {
    let bench =
        ["bench", "--quiet", "--profile", "dev", "--package", "cogn", "--bench", "load", "--locked", "--"];
    execute(cargo().args(bench).args(["siege", SIEGE, "untimed"]))
}

/// Scripts that measure other people's programs.
fn peers(suffix: &str) -> Outcome<Vec<String>> {
    let mut scripts = tracked("crates", suffix)?;
    let others = [package::PACKAGE, batch::SCRIPTS];
    scripts.retain(|path| path.contains("/benches/"));
    scripts.retain(|path| !others.iter().any(|directory| path.starts_with(directory)));
    Ok(scripts)
}
