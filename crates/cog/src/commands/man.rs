//! `cog man`: manual pages.

use clap::CommandFactory as _;

use crate::{
    args::{Cli, ManArgs},
    error::CliError,
    exit::Exit,
    output::Console,
    parse::program,
};

/// Prints the overview, or the page of one command, as roff.
pub(crate) fn man(args: &ManArgs, console: &Console) -> Result<Exit, CliError> {
    let mut cog = Cli::command().name(program());
    cog.build();
    let mut page = &cog;
    for wanted in &args.command {
        page = page.find_subcommand(wanted).ok_or_else(|| unknown(wanted))?;
    }
    let mut roff = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut roff)?;
    console.print(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Ok)
}

fn unknown(name: &str) -> CliError {
    CliError::Usage {
        message: format!("unknown command `{name}`"),
        suggestion: Some("`cog help` lists the commands.".to_owned()),
    }
}
