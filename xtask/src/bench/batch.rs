//! What a row of a batch costs, beside other programs that run the same rows; and what a plan expects, beside a run.

use std::process::Command;

use crate::project::{Outcome, cargo, execute, target_directory};
use crate::{python as package, test};

/// The scripts, from the root.
pub(crate) const SCRIPTS: &str = "crates/cog-batch/benches/peers";

/// What the scripts need beside the engines: the client of HTTP, and a tokenizer of another project.
const TOOLS: &[&str] = &[test::OPENAI, "aiohttp==3.14.5", "bpe-openai==0.1.4"];

/// Prints a table of ratios. Fails only if an answer is missing or wrong.
pub(crate) fn run() -> Outcome {
    let packages = ["--package", "cogn", "--package", "cog-testkit"];
    execute(cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let programs = target_directory()?.join("release");
    let interpreter = test::python(&[package::ENGINES, TOOLS].concat())?;
    let mut bench = Command::new(interpreter);
    bench.arg(format!("{SCRIPTS}/bench.py")).arg(programs.join("cog-mock")).arg(programs.join("cog"));
    execute(bench.env("PYTHONDONTWRITEBYTECODE", "1"))
}
