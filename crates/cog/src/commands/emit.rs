//! JSON to stdout, or into a file.

use std::path::Path;

use cog_json::ToJson;
use cog_module::files::{self, FileError};

use crate::{args::OutputArgs, error::CliError, output::Console};

/// Writes a value where the arguments say; on stdout with line breaks for a person, on one line for a
/// program.
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

/// Writes a file, whole or not at all.
pub(crate) fn file(path: &Path, text: &str, console: &Console) -> Result<(), CliError> {
    let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    bytes(path, text.as_bytes(), console)
}

/// Writes a file that is no text, whole or not at all.
pub(crate) fn bytes(path: &Path, bytes: &[u8], console: &Console) -> Result<(), CliError> {
    files::write_atomic(path, bytes).map_err(|source| unwritable(path, source))?;
    written(path, console);
    Ok(())
}

/// Tells a person where the answer is.
pub(crate) fn written(path: &Path, console: &Console) {
    if console.err().is_terminal {
        console.note(&format!("written to {}", path.display()));
    }
}

/// Looks before the work begins whether its result can be written where the arguments say.
pub(crate) fn check(output: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = output.filter(|path| !is_stdout(path)) else { return Ok(()) };
    files::check_writable(path).map_err(|source| unwritable(path, source))
}

/// Whether `-` was given as the name of a file.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// That a file cannot be written.
pub(crate) fn unwritable(path: &Path, source: FileError) -> CliError {
    CliError::File { what: "cannot write the file", path: path.to_owned(), source }
}

fn text(value: &(impl ToJson + ?Sized), pretty: bool) -> String {
    if pretty { value.to_json_pretty() } else { value.to_json() }
}
