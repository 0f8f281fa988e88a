//! The command line of Cognitive Modules; the binaries `cog` and `cogn` are this one function.
//!
//! * `args`: what can be typed, as clap types; nothing there acts;
//! * `settings`: the one settings value, read once: flag, environment, files, default;
//! * `commands`: one file for each command, from its arguments to what it prints;
//! * `output`: stdout is data, stderr is talk; cards, tables, progress, faults;
//! * `exit`: the five exit codes.

mod args;
mod commands;
mod exit;
mod fault;
mod output;
mod settings;

use std::{ffi::OsString, io, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, error::ErrorKind};

use crate::{args::Cli, exit::Exit, output::Console, settings::Environment};

/// Runs the program with the arguments and the environment of the process.
///
/// Called as `internal-media` it is the process that reads documents, sound and video, and reads nothing else: no
/// settings, no environment.
pub fn main() -> ExitCode {
    if let Some(arguments) = of_internal_media() {
        return cog_media::internal_media(&arguments);
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(told) => return told.into(),
    };
    let environment = Environment::of_process();
    let console = Console::new(&environment, &cli.global);
    output::log::start(&cli.global, &console);
    commands::dispatch(cli, environment, &console).unwrap_or_else(|fault| fault.report(&console)).into()
}

/// The arguments of the hidden command, where it is called.
fn of_internal_media() -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|command| command == "internal-media").then(|| arguments.collect())
}

/// The arguments; help, version and what clap refuses are told here.
fn parse() -> Result<Cli, Exit> {
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
