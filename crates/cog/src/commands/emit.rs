//! Writes output to stdout or to a file.

use std::path::Path;

use cog_json::ToJson;
use cog_module::files::{self, FileError};

use crate::{args::OutputArgs, error::CliError, output::Console};

/// Writes a value as JSON to the file of the arguments or to stdout; indented on a terminal, otherwise on one line.
pub(crate) fn json(
    value: &(impl ToJson + ?Sized),
    args: &OutputArgs,
    console: &Console,
) -> Result<(), CliError> {
    match args.output.as_deref().filter(|path| !is_stdout(path)) {
        Some(path) => file(path, &text(value, args.pretty), console),
        None => Ok(console.print(&text(value, args.pretty || console.out().is_terminal))?),
    }
}

/// Writes a text file atomically.
pub(crate) fn file(path: &Path, text: &str, console: &Console) -> Result<(), CliError> {
    let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    bytes(path, text.as_bytes(), console)
}

/// Writes a binary file atomically.
pub(crate) fn bytes(path: &Path, bytes: &[u8], console: &Console) -> Result<(), CliError> {
    files::write_atomic(path, bytes).map_err(|source| unwritable(path, source))?;
    written(path, console);
    Ok(())
}

/// Reports the path of the output on a terminal.
pub(crate) fn written(path: &Path, console: &Console) {
    if console.err().is_terminal {
        console.note(&format!("written to {}", path.display()));
    }
}

/// Checks before the work begins whether the output file can be written.
pub(crate) fn check(output: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = output.filter(|path| !is_stdout(path)) else { return Ok(()) };
    files::check_writable(path).map_err(|source| unwritable(path, source))
}

/// Whether the path is `-`.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Creates the error of a file that cannot be written.
pub(crate) fn unwritable(path: &Path, source: FileError) -> CliError {
    CliError::File { what: "cannot write the file", path: path.to_owned(), source }
}

fn text(value: &(impl ToJson + ?Sized), pretty: bool) -> String {
    if pretty { value.to_json_pretty() } else { value.to_json() }
}
