//! Finds the modules that a command works on.

use cog_module::{Finder, Origin};

use crate::{
    commands::settings::load_settings,
    error::CliError,
    output::Console,
    settings::{Environment, Flags, Settings},
};

/// A module, with its name as given.
pub(super) type Target = (String, Origin);

/// Creates the module finder from the settings.
pub(super) fn finder(settings: &Settings) -> Finder {
    Finder::new("", settings.modules.value.clone(), settings.home.as_deref())
}

/// Creates the module finder for a command without flags for settings.
pub(super) fn default_finder(environment: Environment, console: &Console) -> Result<Finder, CliError> {
    Ok(finder(&load_settings(Flags::default(), environment, console)?))
}

/// Returns the given modules, or all of them sorted by name.
pub(super) fn targets(finder: &Finder, named: &[String], all: bool) -> Result<Vec<Target>, CliError> {
    if all {
        let mut found = finder.origins();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        return Ok(found);
    }
    named.iter().map(|name| Ok((name.clone(), finder.find(name)?))).collect()
}

/// Returns the location of a module: its directory, or `built in`.
pub(super) fn location(origin: &Origin) -> String {
    match origin {
        Origin::Directory(directory) => directory.display().to_string(),
        _ => "built in".to_owned(),
    }
}
