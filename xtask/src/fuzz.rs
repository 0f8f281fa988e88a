//! `cargo xtask fuzz SECONDS`: runs each fuzz target for so long.
//!
//! The targets are built with the flags that libFuzzer needs, which are unstable: hence `RUSTC_BOOTSTRAP`. A C++ compiler is
//! needed for libFuzzer itself.

use std::process::Command;

use crate::project::{Outcome, cargo, execute, root};

const TARGETS: &[&str] = &["json_strict", "json_tolerant"];

const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// The only platform on which the flags are tried out.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Builds and runs every target; a crash fails, and leaves its input under `target/fuzz/`.
pub(crate) fn run(seconds: &str) -> Outcome {
    let directory = root().join("target/fuzz");
    let build =
        ["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", PLATFORM, "--target-dir"];
    execute(cargo().args(build).arg(&directory).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS))?;
    for target in TARGETS {
        let corpus = directory.join("corpus").join(target);
        std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
        let binary = directory.join(PLATFORM).join("release").join(target);
        let artifacts = format!("-artifact_prefix={}/", directory.display());
        execute(Command::new(binary).arg(&corpus).arg(format!("-max_total_time={seconds}")).arg(artifacts))?;
    }
    Ok(())
}
