//! `cargo xtask bench`: the benchmarks, beside the peers that they are compared to. What counts is the ratios of one run.

pub(crate) mod commands;

use std::process::Command;

use crate::project::{Outcome, cargo, execute, root, tracked};
use crate::test::python;

/// Runs every benchmark of the workspace, then each peer script with the tools it needs, then whole commands.
pub(crate) fn run() -> Outcome {
    execute(cargo().args(["bench", "--workspace", "--locked"]))?;
    for script in peers(".py")? {
        let interpreter = python(&["orjson", "jsonschema-rs"])?;
        execute(Command::new(interpreter).arg(&script))?;
    }
    for script in peers(".mjs")? {
        let folder = root().join("target/tools/node");
        execute(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&folder).arg("ajv"))?;
        execute(Command::new("node").arg(&script).env("NODE_PATH", folder.join("node_modules")))?;
    }
    commands::run()
}

/// Scripts that measure other people's programs.
fn peers(suffix: &str) -> Outcome<Vec<String>> {
    let scripts = tracked("crates", suffix)?;
    Ok(scripts.into_iter().filter(|path| path.contains("/benches/")).collect())
}
