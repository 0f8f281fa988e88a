//! The environment of somebody who has set nothing.

use std::{net::TcpStream, path::Path, process::Command};

/// Where Ollama listens.
const OLLAMA: (&str, u16) = ("localhost", 11434);
/// A URL at which nothing listens.
const CLOSED: &str = "http://127.0.0.1:1";

/// Gives a command the environment of a newcomer: a home, a path, no key and no setting, as `env -i HOME=… PATH=…` does.
///
/// The command looks for an Ollama, as it does for a newcomer. If one runs on this machine, its models would answer in place of the
/// samples that the tests expect; only then is the search pointed to a closed port, where it finds nothing.
pub fn as_newcomer<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("HOME", home).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    if TcpStream::connect(OLLAMA).is_ok() {
        command.env("COG_DETECT_OLLAMA", CLOSED);
    }
    command
}
