//! `cog new`: a module from the template, or a copy of another one.

use cog_module::scaffold;
use cog_spec::Tier;

use super::targets::default_finder;
use crate::{args::NewArgs, exit::Exit, fault::Fault, output::Console, settings::Environment};

/// Makes the module, prints its folder, and says what comes next.
pub(crate) fn new(args: &NewArgs, environment: Environment, console: &Console) -> Result<Exit, Fault> {
    let folder = match &args.from {
        Some(from) => {
            let origin = default_finder(environment, console)?.find(from)?;
            scaffold::copy(&args.folder, &args.name, &origin)?
        }
        None => scaffold::new(&args.folder, &args.name, args.tier()?)?,
    };
    let shown = folder.strip_prefix(".").unwrap_or(&folder).display().to_string();
    console.print(&shown)?;
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    console.note(&format!("next: edit {path}/prompt.md and schema.json, then `cog validate {path}`"));
    Ok(Exit::Ok)
}

impl NewArgs {
    fn tier(&self) -> Result<Tier, Fault> {
        self.tier.parse().map_err(|word: cog_spec::UnknownWord| Fault::usage(word.to_string()))
    }
}
