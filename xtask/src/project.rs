//! What every chore needs: the root of the workspace, its files, and other programs.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a chore answers: nothing, or why it failed.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The directory that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Prints a line. A closed stdout is not an error.
pub(crate) fn say(line: Arguments<'_>) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Reads a file, given by its path from the root.
#[expect(
    clippy::disallowed_methods,
    reason = "chores read the files of this workspace, which have no limits"
)]
pub(crate) fn read(path: impl AsRef<Path>) -> Outcome<String> {
    let path = root().join(path);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a JSON file, given by its path from the root.
pub(crate) fn read_json(path: impl AsRef<Path>) -> Outcome<Value> {
    let path = path.as_ref();
    serde_json::from_str(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file, given by its path from the root.
#[expect(clippy::disallowed_methods, reason = "chores write generated pages, which git keeps")]
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> Outcome {
    let path = root().join(path);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file that is not tracked, and the directories above it.
#[expect(clippy::disallowed_methods, reason = "chores write below the target directory")]
pub(crate) fn write_new(path: impl AsRef<Path>, text: &str) -> Outcome {
    let path = path.as_ref();
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// A directory under the target directory, without what earlier runs left in it.
pub(crate) fn emptied(name: &str) -> Outcome<PathBuf> {
    let directory = target_directory()?.join(name);
    match std::fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", directory.display())),
        _ => Ok(directory),
    }
}

/// The tracked files under a directory whose names end with `suffix`, sorted, by their paths from the root.
pub(crate) fn tracked(directory: &str, suffix: &str) -> Outcome<Vec<String>> {
    let listed = capture(Command::new("git").args(["ls-files", "--", directory]))?;
    let mut files: Vec<String> =
        listed.lines().filter(|path| path.ends_with(suffix)).map(str::to_owned).collect();
    files.retain(|path| root().join(path).exists());
    files.sort();
    Ok(files)
}

/// Runs a program from the root, its output shown; fails unless it succeeds.
pub(crate) fn execute(command: &mut Command) -> Outcome {
    say(format_args!("$ {}", shown(command)));
    let status = command.current_dir(root()).status().map_err(|error| missing(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", shown(command))) }
}

/// Runs a program from the root and gives what it printed; fails unless it succeeds.
pub(crate) fn capture(command: &mut Command) -> Outcome<String> {
    let output = command.current_dir(root()).output().map_err(|error| missing(command, &error))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed: {}\n{errors}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} printed no UTF-8", shown(command)))
}

/// The `cargo` that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for name in OF_THIS_PACKAGE {
        command.env_remove(name);
    }
    command
}

/// What `cargo run` tells this program about its own package.
///
/// The build script of ring watches these variables. If they passed, it would run again at each change between `cargo xtask …`
/// and `cargo …`, and everything above ring would be compiled again.
const OF_THIS_PACKAGE: [&str; 8] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The features with which everything is tested: one set for all steps, so that each crate is compiled once.
pub(crate) const FEATURES: [&str; 2] = ["--features", "cogn/nats,cog-batch/arrow"];

/// The directory of the programs `cog`, `cogn` and `cog-mock`, as the tests use them.
///
/// Built as a test run builds them: a plain `cargo build` chooses other features of the dependencies, and compiles most of
/// them again.
pub(crate) fn programs() -> Outcome<PathBuf> {
    execute(cargo().args(["test", "--workspace", "--locked", "--quiet", "--no-run"]).args(FEATURES))?;
    Ok(target_directory()?.join("debug"))
}

/// Where `cargo` puts what it builds.
pub(crate) fn target_directory() -> Outcome<PathBuf> {
    let metadata = capture(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let directory = metadata.get("target_directory").and_then(Value::as_str);
    Ok(PathBuf::from(directory.ok_or("cargo names no target directory")?))
}

fn shown(command: &Command) -> String {
    let arguments: Vec<_> = command.get_args().map(|text| text.to_string_lossy()).collect();
    format!("{} {}", command.get_program().to_string_lossy(), arguments.join(" "))
}

fn missing(command: &Command, error: &std::io::Error) -> String {
    format!("{} cannot be started: {error}", command.get_program().to_string_lossy())
}
