//! `cog new`: a module from the template, or a copy of another one.

use std::path::{Path, PathBuf};

use cog_host::{
    TrustStore,
    settings::{Environment, Flags, Settings},
};
use cog_module::{Trust, scaffold};
use cog_spec::Tier;

use crate::{args::NewArgs, error::CliError, exit::Exit, output::Console};

/// Creates the module, prints its directory, and suggests the next step.
pub(crate) fn new(args: &NewArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let finder = settings.finder();
    let found_by_name = finder.roots().first().filter(|root| root.is_dir());
    let parent = args.directory.as_deref().or(found_by_name.map(PathBuf::as_path)).unwrap_or(Path::new("."));
    let (directory, trust) = match &args.from {
        Some(from) => {
            let origin = finder.find(from)?;
            (scaffold::copy(parent, &args.name, &origin)?, finder.trust(&origin))
        }
        None => (scaffold::new(parent, &args.name, args.tier()?)?, Trust::Trusted),
    };
    // A copy of what is not trusted is not trusted either: nobody has read its manifest.
    if trust == Trust::Trusted
        && let Some(store) = TrustStore::new(&settings)
        && let Err(error) = store.add(&directory)
    {
        console.note(&format!("it may not call tools yet: {error}"));
    }
    let shown = directory.strip_prefix(".").unwrap_or(&directory).display().to_string();
    console.print(&shown)?;
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    console.note(&format!("next: edit {path}/prompt.md and schema.json, then `cog validate {path}`"));
    if finder.find_name(&args.name).is_err() {
        console.note("`cog list`, `cog test --all` and `cog serve` find modules in cognitive/modules; others by their path");
    }
    Ok(Exit::Ok)
}

impl NewArgs {
    fn tier(&self) -> Result<Tier, CliError> {
        self.tier.parse().map_err(|word: cog_spec::ParseEnumError| CliError::usage(word.to_string()))
    }
}
