//! What was typed, from the arguments of the process.

use std::{ffi::OsString, io};

use clap::{CommandFactory as _, FromArgMatches as _, error::ErrorKind};

use crate::{args::Cli, exit::Exit};

/// The arguments of the hidden command, where it is called.
pub(crate) fn of_internal_media() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|command| command == "internal-media").then(|| arguments.collect())
}

/// The arguments; help, version and what clap refuses are told here.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|told| match told.kind() {
        ErrorKind::InvalidUtf8 => tell(&no_text()),
        _ => tell(&told),
    })
}

/// Says which argument is no text, which clap leaves to be guessed.
fn no_text() -> clap::Error {
    let mut arguments = std::env::args_os().skip(1);
    let argument = arguments.find(|argument| argument.to_str().is_none()).unwrap_or_default();
    let message = format!(
        "the argument `{}` is not UTF-8 text; only the files of an input and an output may be called so",
        argument.to_string_lossy().escape_debug()
    );
    Cli::command().error(ErrorKind::InvalidUtf8, message)
}

fn tell(told: &clap::Error) -> Exit {
    match told.print() {
        _ if told.use_stderr() => Exit::Usage,
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
        _ => Exit::Ok,
    }
}
