//! The sources of settings below the flags: environment variables and settings files.

use std::path::{Path, PathBuf};

use super::{
    Environment, Setting, SettingsError, Source,
    file::{Content, SettingsFile},
};

/// The flag and the environment variable of one setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    pub(super) flag: &'static str,
    pub(super) variable: &'static str,
}

/// The sources of settings below the flags.
pub(super) struct Layers<'a> {
    pub(super) environment: &'a Environment,
    pub(super) project: Option<SettingsFile>,
    pub(super) operator: Option<SettingsFile>,
}

impl Layers<'_> {
    /// Returns the value of one setting from its strongest source: flag, variable, project's file, operator's file.
    pub(super) fn pick<T>(
        &self,
        names: Names,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        in_file: impl Fn(&Content) -> Option<T>,
    ) -> Result<Option<Setting<T>>, SettingsError> {
        if let Some(value) = flag {
            return Ok(Some(Setting { value, source: Source::flag(names.flag) }));
        }
        if let Some(text) = self.environment.get(names.variable) {
            let value =
                parse(&text).map_err(|message| SettingsError::Variable { name: names.variable, message })?;
            return Ok(Some(Setting { value, source: Source::variable(names.variable) }));
        }
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        Ok(files.into_iter().find_map(|file| Some(Setting::from_file(in_file(&file.content)?, &file.path))))
    }

    /// Returns a list of directories from the variable, or from the operator's file, where relative paths start.
    pub(super) fn directories(
        &self,
        variable: &'static str,
        home: Option<&Path>,
        in_file: impl Fn(&Content) -> Option<&Vec<PathBuf>>,
    ) -> Setting<Vec<PathBuf>> {
        if let Some(value) = self.environment.paths(variable) {
            return Setting { value, source: Source::variable(variable) };
        }
        let from_file = |file: &SettingsFile| {
            let paths = in_file(&file.content)?.iter();
            let value = paths.map(|path| file.directory().join(expand_home(path, home))).collect();
            Some(Setting::from_file(value, &file.path))
        };
        self.operator.as_ref().and_then(from_file).unwrap_or_else(|| Setting::default(Vec::new()))
    }
}

/// Replaces a leading `~` by the home directory.
pub(super) fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}
