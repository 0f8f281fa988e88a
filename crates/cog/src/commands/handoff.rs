//! `cog handoff`: creates, checks and renders handoff packets.

mod apply;
mod artifacts;
mod check;
mod create;
mod packet;

use cog_host::settings::Environment;

use crate::{
    args::{HandoffArgs, HandoffCommand},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the subcommand.
pub(crate) fn handoff(
    args: HandoffArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match args.command {
        HandoffCommand::New(args) => create::new(&args, environment, console),
        HandoffCommand::Check(args) => check::check(&args, environment, console),
        HandoffCommand::Apply(args) => apply::apply(&args, environment, console),
        HandoffCommand::Show(args) => apply::show(&args, environment, console),
    }
}
