//! The exports of every shipped module, read by the validators of their formats.

use std::process::Command;

use crate::mcp::{python, script};

#[test]
fn validators_accept_every_export() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(python());
    command.args([&script("exports.py"), env!("CARGO_BIN_EXE_cog")]).current_dir(place.path());
    command.env("HOME", place.path()).env("COG_DETECT_OLLAMA", "off").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let count: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert!(count > 15, "{count} modules");
}
