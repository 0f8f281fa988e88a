//! Finds the modules that a command works on.

use cog_host::settings::{Environment, Flags, Settings};
use cog_module::{Finder, LoadError, Origin, Rule, load_manifest};

use crate::error::CliError;

/// A module, with its name as given.
pub(super) type Target = (String, Origin);

/// Creates the module finder for a command without flags for settings.
pub(super) fn default_finder(environment: Environment) -> Result<Finder, CliError> {
    Ok(Settings::read(Flags::default(), environment)?.finder())
}

/// Returns the given modules, all that are not built in, or the one in the working directory.
pub(super) fn targets(finder: &Finder, named: &[String], all: bool) -> Result<Vec<Target>, CliError> {
    if all {
        let found = own(finder);
        let none = || {
            CliError::Usage {
            message: "no module was found".to_owned(),
            suggestion: Some(
                "--all skips built-in modules; `cog list` lists all, and `cog config` where they are searched."
                    .to_owned(),
            ),
        }
        };
        return if found.is_empty() { Err(none()) } else { Ok(found) };
    }
    if named.is_empty() {
        return match module_here(finder) {
            Some(origin) => Ok(vec![(".".to_owned(), origin)]),
            None => Err(CliError::Usage {
                message: "no module is named, and the working directory is not a module".to_owned(),
                suggestion: Some("Name a module, or use --all for every module of `cog list`.".to_owned()),
            }),
        };
    }
    named.iter().map(|name| Ok((name.clone(), finder.find(name)?))).collect()
}

/// Returns the modules that are not built in, sorted by name.
pub(super) fn own(finder: &Finder) -> Vec<Target> {
    let mut found = finder.origins();
    found.retain(|(_, origin)| matches!(origin, Origin::Directory(_)));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the module in the working directory, if it contains a manifest.
pub(super) fn module_here(finder: &Finder) -> Option<Origin> {
    let origin = finder.find(".").ok()?;
    let is_missing =
        |error: &LoadError| error.diagnostics.iter().any(|one| one.rule == Rule::ManifestMissing);
    (!load_manifest(&origin).as_ref().is_err_and(is_missing)).then_some(origin)
}

/// Returns the location of a module: its directory, or `built in`.
pub(super) fn location(origin: &Origin) -> String {
    match origin {
        Origin::Directory(directory) => directory.display().to_string(),
        _ => "built in".to_owned(),
    }
}
