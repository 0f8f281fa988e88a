//! The command line of Cognitive Modules, used by the binaries `cog` and `cogn`.
//!
//! * `args`: what can be typed, as clap types; nothing there acts; `typed`: what was typed;
//! * `settings`: the one settings value, read once: flag, environment, files, default;
//! * `commands`: one file for each command, from its arguments to what it prints;
//! * `output`: stdout is data, stderr is talk; cards, tables, progress, faults;
//! * `exit`: the five exit codes.

mod args;
mod commands;
mod error;
mod exit;
mod output;
mod parse;
mod settings;

use std::process::ExitCode;

use crate::{output::Console, settings::Environment};

/// Runs the program with the arguments and the environment of the process.
///
/// With `internal-media` it is the child process that reads documents, audio and video. That process reads neither
/// settings nor environment variables.
pub fn main() -> ExitCode {
    if let Some(arguments) = parse::internal_media() {
        return cog_media::internal_media(&arguments);
    }
    let (cli, deprecated) = match parse::parse() {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let environment = Environment::from_process();
    let console = Console::new(&environment, &cli.global);
    output::log::start(&cli.global, &console, matches!(cli.command, args::Command::Serve(_)));
    deprecated.iter().for_each(|flag| console.deprecated(flag));
    commands::dispatch(cli, environment, &console).unwrap_or_else(|fault| fault.report(&console)).into()
}
