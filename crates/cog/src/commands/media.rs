//! `cog media`: inspects media files.

mod check;
mod frames;
mod probe;
mod sources;
mod strip;
mod text;

pub(super) use self::sources::classify;

use cog_host::settings::Environment;

use crate::{
    args::{MediaArgs, MediaCommand},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Runs the subcommand.
pub(crate) fn media(args: MediaArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    match args.command {
        MediaCommand::Check(args) => check::check(&args, environment, console),
        MediaCommand::Probe(args) => probe::probe(&args, environment, console),
        MediaCommand::Strip(args) => strip::strip(&args, environment, console),
        MediaCommand::Frames(args) => frames::frames(&args, environment, console),
        MediaCommand::Text(args) => text::text(&args, environment, console),
    }
}
