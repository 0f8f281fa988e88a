//! `cargo xtask bench`: the benchmarks, beside the peers that they are compared to.

use std::process::Command;

use crate::project::{Outcome, cargo, execute, root, say, tracked};
use crate::test::python;

/// Runs every benchmark of the workspace, then each peer script with the tools it needs.
pub(crate) fn run() -> Outcome {
    execute(cargo().args(["bench", "--workspace"]))?;
    for script in tracked("crates", ".py")?.into_iter().filter(|path| path.contains("/benches/")) {
        let interpreter = python(&["orjson", "jsonschema-rs"])?;
        execute(Command::new(interpreter).arg(&script))?;
    }
    for script in tracked("crates", ".mjs")?.into_iter().filter(|path| path.contains("/benches/")) {
        let folder = root().join("target/tools/node");
        execute(Command::new("npm").args(["install", "--silent", "--prefix"]).arg(&folder).arg("ajv"))?;
        execute(Command::new("node").arg(&script).env("NODE_PATH", folder.join("node_modules")))?;
    }
    say(format_args!("bench: done"));
    Ok(())
}
