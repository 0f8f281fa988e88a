//! `cog logs`: the log of past runs.

mod list;
mod replay;
mod show;

use cog_spec::{Code, ErrorBody};

use super::run_log::{Entries, RunLog};
use crate::{
    args::{LogsArgs, LogsCommand},
    error::CliError,
    exit::Exit,
    output::Console,
    settings::{Environment, Settings},
};

/// Lists the runs, or runs the subcommand.
pub(crate) fn logs(args: LogsArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        None => list::list(&args.list, environment, console),
        Some(LogsCommand::Show(args)) => show::show(&args, environment, console),
        Some(LogsCommand::Replay(args)) => replay::replay(*args, environment, console),
    }
}

/// Reads the log.
fn entries(settings: &Settings) -> Result<Entries, CliError> {
    let log = RunLog::new(settings).ok_or_else(|| is_off(settings))?;
    Ok(log.read()?)
}

fn is_off(settings: &Settings) -> ErrorBody {
    let logs = &settings.logs;
    let (message, advice) = match logs.enabled.value {
        true => ("there is no directory for the log: HOME is not set", "Set COG_LOGS_DIRECTORY."),
        false => ("runs are not logged: `logs.enabled` is false", "`cog config` shows what sets it."),
    };
    ErrorBody::new(Code::InvalidReference, message).suggest(advice)
}
