//! The command line of Cognitive Modules; the binaries `cog` and `cogn` are this one function.
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
mod settings;
mod typed;

use std::process::ExitCode;

use crate::{output::Console, settings::Environment};

/// Runs the program with the arguments and the environment of the process.
///
/// Called as `internal-media` it is the process that reads documents, sound and video, and reads nothing else: no
/// settings, no environment.
pub fn main() -> ExitCode {
    if let Some(arguments) = typed::internal_media() {
        return cog_media::internal_media(&arguments);
    }
    let (cli, deprecated) = match typed::parse() {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let environment = Environment::of_process();
    let console = Console::new(&environment, &cli.global);
    output::log::start(&cli.global, &console);
    deprecated.iter().for_each(|flag| console.deprecated(flag));
    commands::dispatch(cli, environment, &console).unwrap_or_else(|fault| fault.report(&console)).into()
}
