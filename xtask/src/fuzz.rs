//! `cargo xtask fuzz SECONDS [TARGET]`: runs each fuzz target, or one, for so long. `cargo xtask fuzz --check` compiles them.
//!
//! The targets are built with the flags that libFuzzer needs, which are unstable: hence `RUSTC_BOOTSTRAP`. A C++ compiler is
//! needed for libFuzzer itself.

use std::path::Path;
use std::process::Command;

use crate::project::{Outcome, cargo, execute, read, root, target_directory, write_new};

const TARGETS: &[&str] = &[
    "json_strict",
    "json_tolerant",
    "sse",
    "decoders",
    "module",
    "schema",
    "image",
    "url",
    "answer",
    "condition",
    "drafts",
];

const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// The only platform on which the flags are tried out.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Copies the lock of the program, so that what is fuzzed is what ships. Cargo adds the crates that only the targets use.
fn lock() -> Outcome {
    write_new(root().join("fuzz/Cargo.lock"), &read("Cargo.lock")?)
}

/// Compiles the targets, without the flags of a fuzzer.
pub(crate) fn check() -> Outcome {
    lock()?;
    let check = ["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"];
    execute(cargo().args(check).arg(target_directory()?))
}

/// Builds the targets and runs them, or only one; a crash fails, and leaves its input under `target/fuzz/`.
pub(crate) fn run(seconds: &str, only: Option<&str>) -> Outcome {
    lock()?;
    let directory = root().join("target/fuzz");
    let build =
        ["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", PLATFORM, "--target-dir"];
    execute(cargo().args(build).arg(&directory).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS))?;
    let targets: Vec<_> = TARGETS.iter().filter(|target| only.is_none_or(|only| only == **target)).collect();
    if targets.is_empty() {
        return Err(format!("unknown fuzz target; known: {}", TARGETS.join(", ")));
    }
    targets.into_iter().try_for_each(|target| run_target(target, seconds, &directory))
}

/// Runs one target from its seeds and from what earlier runs found.
fn run_target(target: &str, seconds: &str, directory: &Path) -> Outcome {
    let corpus = directory.join("corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let seeds = root().join("fuzz/seeds").join(target);
    let binary = directory.join(PLATFORM).join("release").join(target);
    let limits = ["-timeout=20", "-rss_limit_mb=2048"];
    let time = format!("-max_total_time={seconds}");
    let artifacts = format!("-artifact_prefix={}/{target}-", directory.display());
    execute(Command::new(binary).arg(&corpus).arg(seeds).args(limits).arg(time).arg(artifacts))
}
