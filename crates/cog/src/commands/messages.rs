//! `cog messages`: changes histories of messages.

mod fix;
mod history;

use crate::{
    args::{MessagesArgs, MessagesCommand},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the subcommand.
pub(crate) fn messages(args: &MessagesArgs, console: &Console) -> Result<Exit, CliError> {
    match &args.command {
        MessagesCommand::Fix(args) => fix::fix(args, console),
    }
}
