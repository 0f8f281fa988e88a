//! `cog new`: a module from the template, or a copy of another one.

use cog_module::scaffold;
use cog_spec::Tier;

use super::targets::default_finder;
use crate::{args::NewArgs, error::CliError, exit::Exit, output::Console, settings::Environment};

/// Creates the module, prints its directory, and suggests the next step.
pub(crate) fn new(args: &NewArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let directory = match &args.from {
        Some(from) => {
            let origin = default_finder(environment, console)?.find(from)?;
            scaffold::copy(&args.directory, &args.name, &origin)?
        }
        None => scaffold::new(&args.directory, &args.name, args.tier()?)?,
    };
    let shown = directory.strip_prefix(".").unwrap_or(&directory).display().to_string();
    console.print(&shown)?;
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    console.note(&format!("next: edit {path}/prompt.md and schema.json, then `cog validate {path}`"));
    Ok(Exit::Ok)
}

impl NewArgs {
    fn tier(&self) -> Result<Tier, CliError> {
        self.tier.parse().map_err(|word: cog_spec::ParseEnumError| CliError::usage(word.to_string()))
    }
}
