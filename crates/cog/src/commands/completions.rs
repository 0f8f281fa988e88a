//! `cog completions`: a shell completion script.

use clap::CommandFactory as _;

use crate::{
    args::{Cli, CompletionsArgs},
    error::CliError,
    exit::Exit,
    output::Console,
    parse::program,
};

/// Prints the script for a shell and for the name of this program.
pub(crate) fn completions(args: &CompletionsArgs, console: &Console) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), program(), &mut script);
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
