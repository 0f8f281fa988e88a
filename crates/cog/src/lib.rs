//! The command line of Cognitive Modules, used by the binaries `cog` and `cogn`.
//!
//! * `args`: the arguments, as clap types without behaviour; `parse` parses them;
//! * `commands`: one file per command, from its arguments to its output;
//! * `output`: data on stdout, messages on stderr; cards, tables, progress, errors;
//! * `error`: errors and exit codes;
//! * `system`: signals, and what is set at the operating system and in the C library.

mod args;
mod commands;
mod error;
mod output;
mod parse;
mod system;

use std::process::ExitCode;

use cog_host::settings::Environment;

use crate::output::Console;

/// Runs the program with the arguments and the environment of the process.
///
/// With `internal-media` it is the child process that reads documents, audio and video. That process reads neither
/// settings nor environment variables.
pub fn main() -> ExitCode {
    // First: the child process that reads media looks up hosts too, and no other thread may run yet.
    system::limit_lookups();
    if let Some(arguments) = parse::internal_media() {
        return cog_media::internal_media(&arguments);
    }
    // Before the arguments are parsed: a shell completes a command that is not valid yet.
    if let Some(exit) = commands::complete() {
        return exit.into();
    }
    let cli = match parse::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let environment = Environment::from_process();
    let console = Console::new(&environment, &cli.global);
    output::start_log(&cli, &console);
    commands::dispatch(cli, environment, &console).unwrap_or_else(|error| error.report(&console)).into()
}
