//! Which modules a command is about.

use cog_module::{Finder, Origin};

use crate::{
    error::CliError,
    output::Console,
    settings::{Environment, Flags, Settings},
};

/// A module that was asked for, by the name it was asked for with.
pub(super) type Target = (String, Origin);

/// The finder that the settings give.
pub(super) fn finder(settings: &Settings) -> Finder {
    Finder::new("", settings.modules.value.clone(), settings.home.as_deref())
}

/// The same for a command without settings of its own.
pub(super) fn default_finder(environment: Environment, console: &Console) -> Result<Finder, CliError> {
    Ok(finder(&Settings::load(Flags::default(), environment, console)?))
}

/// The modules that were named, or all of them, sorted by name.
pub(super) fn targets(finder: &Finder, named: &[String], all: bool) -> Result<Vec<Target>, CliError> {
    if all {
        let mut found = finder.origins();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        return Ok(found);
    }
    named.iter().map(|name| Ok((name.clone(), finder.find(name)?))).collect()
}

/// Where a module comes from, for people: `built in`, or its directory.
pub(super) fn whereabouts(origin: &Origin) -> String {
    match origin {
        Origin::Directory(directory) => directory.display().to_string(),
        _ => "built in".to_owned(),
    }
}
