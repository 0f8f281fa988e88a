//! Histories of messages: read from a file, written to a file or stdout.

use std::path::Path;

use cog_harmony::{Conversation, Document, Problem};
use cog_spec::{Code, ErrorBody};

use crate::{
    commands::{emit, input},
    error::CliError,
    output::{Console, Palette},
};

/// Reads a history from a file, or from stdin for `-`.
pub(in crate::commands) fn read(file: &Path) -> Result<Document, CliError> {
    let text = input::any_text(file)?.map_err(|error| not_readable(file, &error.to_string()))?;
    Document::parse(&text).map_err(|problem| unreadable(file, &problem))
}

/// Reads the messages of a history.
pub(in crate::commands) fn conversation(document: &Document, file: &Path) -> Result<Conversation, CliError> {
    let messages = document.messages().map_err(|problem| unreadable(file, &problem))?;
    Conversation::read(messages).map_err(|problems| match problems.first() {
        Some(problem) => unreadable(file, problem),
        None => not_readable(file, "the messages are not valid").into(),
    })
}

/// Creates the error of a history that cannot be read.
pub(in crate::commands) fn unreadable(file: &Path, problem: &Problem) -> CliError {
    let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    let error = not_readable(file, &format!("{path}{}", problem.message));
    CliError::from(error.suggest(problem.rule.suggestion))
}

fn not_readable(file: &Path, reason: &str) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("cannot read the messages of {}: {reason}", file.display()))
}

/// Writes text to the file, or to stdout without one.
pub(in crate::commands) fn write(
    text: &str,
    output: Option<&Path>,
    console: &Console,
) -> Result<(), CliError> {
    match output.filter(|path| !emit::is_stdout(path)) {
        Some(path) => emit::file(path, text, console),
        None => Ok(console.print(text)?),
    }
}

/// Formats a problem as one line: path, message, rule.
pub(super) fn line(path: &str, message: &str, rule: &str, palette: Palette) -> String {
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{}{message} {}", palette.name(path), palette.dim(format_args!("[{rule}]")))
}
