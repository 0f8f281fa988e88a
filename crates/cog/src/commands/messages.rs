//! `cog messages`: changes histories of messages.

mod archive;
mod convert;
mod count;
mod expand;
mod fix;
pub(super) mod history;
mod trim;

use cog_host::settings::Environment;

use crate::{
    args::{MessagesArgs, MessagesCommand},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the subcommand.
pub(crate) fn messages(
    args: &MessagesArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match &args.command {
        MessagesCommand::Convert(args) => convert::convert(args, console),
        MessagesCommand::Fix(args) => fix::fix(args, console),
        MessagesCommand::Count(args) => count::count(args, console),
        MessagesCommand::Trim(args) => trim::trim(args, console),
        MessagesCommand::Archive(args) => archive::archive(args, environment, console),
        MessagesCommand::Expand(args) => expand::expand(args, environment, console),
    }
}
