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

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{args::Cli, exit::Exit, output::Console, settings::Environment};

/// Runs the program with the arguments and the environment of the process.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(told) => return told.into(),
    };
    let environment = Environment::of_process();
    let console = Console::new(&environment, &cli.global);
    output::log::start(&cli.global, &console);
    commands::dispatch(cli, environment, &console).unwrap_or_else(|fault| fault.report(&console)).into()
}

/// The arguments; help, version and what clap refuses are told here.
fn parse() -> Result<Cli, Exit> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|told| {
        // Nothing is left to tell where not even this can be printed.
        let _ = told.print();
        if told.use_stderr() { Exit::Usage } else { Exit::Ok }
    })
}
