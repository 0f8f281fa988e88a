//! `cog completions`: a shell completion script.

use super::complete::script;
use crate::{args::CompletionsArgs, error::CliError, exit::Exit, output::Console};

/// Prints the script for a shell and for the name of this program.
pub(crate) fn completions(args: &CompletionsArgs, console: &Console) -> Result<Exit, CliError> {
    let script = script(&args.shell.to_string())?;
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
