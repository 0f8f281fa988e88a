//! `cog capabilities`: what this runtime can do (SPEC 8.1).

use super::emit;
use crate::{args::CapabilitiesArgs, error::CliError, exit::Exit, output::Console};

/// Prints the document that every runtime must be able to show.
pub(crate) fn capabilities(args: &CapabilitiesArgs, console: &Console) -> Result<Exit, CliError> {
    emit::json(&cog_server::capabilities(), &args.output, console)?;
    Ok(Exit::Ok)
}
