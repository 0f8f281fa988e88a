//! `cog logs`: the log of past runs.

mod list;
mod replay;
mod show;

use cog_host::settings::Environment;

use crate::{
    args::{LogsArgs, LogsCommand},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Lists the runs, or runs the subcommand.
pub(crate) fn logs(args: LogsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        None => list::list(&args.list, environment, console),
        Some(LogsCommand::Show(args)) => show::show(&args, environment, console),
        Some(LogsCommand::Replay(args)) => replay::replay(*args, environment, console),
    }
}
