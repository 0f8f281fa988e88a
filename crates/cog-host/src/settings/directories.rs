//! The user's directories: the home directory, and those of the XDG Base Directory Specification.

use std::path::{Path, PathBuf};

use super::Environment;

/// The user's directories.
#[derive(Debug, Clone, Default)]
pub struct UserDirectories {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The directory of the settings file: `$XDG_CONFIG_HOME/cog`, otherwise `~/.config/cog`.
    pub config: Option<PathBuf>,
    /// The directory of logs, halted runs and trust: `$XDG_STATE_HOME/cog`, otherwise `~/.local/state/cog`.
    pub state: Option<PathBuf>,
}

impl UserDirectories {
    /// Reads the variables of the environment.
    pub(super) fn read(environment: &Environment) -> Self {
        let home = environment.path("HOME").or_else(|| environment.path("USERPROFILE"));
        Self {
            config: directory(environment, "XDG_CONFIG_HOME", home.as_deref(), ".config"),
            state: directory(environment, "XDG_STATE_HOME", home.as_deref(), ".local/state"),
            home,
        }
    }
}

fn directory(
    environment: &Environment,
    variable: &str,
    home: Option<&Path>,
    default: &str,
) -> Option<PathBuf> {
    // The specification tells programs to ignore relative paths.
    let named = environment.path(variable).filter(|path| path.is_absolute());
    Some(named.or_else(|| Some(home?.join(default)))?.join("cog"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xdg_variables_replace_the_defaults_unless_they_are_relative() {
        let read = |variables| {
            let directories = UserDirectories::read(&Environment::from(variables));
            (directories.config.unwrap(), directories.state.unwrap())
        };
        let paths = |config: &str, state: &str| (PathBuf::from(config), PathBuf::from(state));
        assert_eq!(
            read([("HOME", "/h"), ("X", ""), ("Y", "")]),
            paths("/h/.config/cog", "/h/.local/state/cog")
        );
        assert_eq!(
            read([("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")]),
            paths("/c/cog", "/s/cog")
        );
        assert_eq!(
            read([("HOME", "/h"), ("XDG_CONFIG_HOME", "c"), ("XDG_STATE_HOME", "")]),
            paths("/h/.config/cog", "/h/.local/state/cog")
        );
        assert_eq!(
            read([("USERPROFILE", "/u"), ("XDG_CONFIG_HOME", "/c"), ("X", "")]),
            paths("/c/cog", "/u/.local/state/cog")
        );
    }
}
