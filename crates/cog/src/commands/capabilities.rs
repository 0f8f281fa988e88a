//! `cog capabilities`: the capabilities of this runtime (SPEC 8.1).

use super::emit;
use crate::{args::CapabilitiesArgs, error::CliError, exit::Exit, output::Console};

/// Prints the capabilities document.
pub(crate) fn capabilities(args: &CapabilitiesArgs, console: &Console) -> Result<Exit, CliError> {
    emit::json(&cog_server::capabilities(), &args.output, console)?;
    Ok(Exit::Ok)
}
