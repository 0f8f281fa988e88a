//! Where settings come from: the environment variables of the process and settings files, below the flags. A value keeps its source.

use std::{
    borrow::Cow,
    collections::HashMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

use cog_spec::Secret;

use super::{
    SettingsError, UserDirectories,
    file::{Content, SettingsFile},
};

/// The source of a setting, the strongest first (docs/settings.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag: `--model`.
    Flag(Cow<'static, str>),
    /// An environment variable: `LLM_MODEL`.
    Variable(Cow<'static, str>),
    /// A settings file.
    File(PathBuf),
    /// The earlier run that this one continues.
    EarlierRun,
    /// No source sets it.
    Default,
}

impl Source {
    /// Creates the source of a flag, with its dashes.
    pub(super) fn flag(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Flag(name.into())
    }

    /// Creates the source of an environment variable.
    pub(super) fn variable(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Variable(name.into())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(name) | Source::Variable(name) => f.write_str(name),
            Source::File(path) => path.display().fmt(f),
            Source::EarlierRun => f.write_str("the earlier run"),
            Source::Default => f.write_str("default"),
        }
    }
}

/// The value of a setting and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The source.
    pub source: Source,
}

impl<T> Setting<T> {
    /// Creates the default value.
    pub fn default(value: T) -> Self {
        Self { value, source: Source::Default }
    }

    /// Creates a value from a settings file.
    pub fn from_file(value: T, file: &Path) -> Self {
        Self { value, source: Source::File(file.to_owned()) }
    }

    /// Wraps the value in `Some`.
    pub fn some(self) -> Setting<Option<T>> {
        Setting { value: Some(self.value), source: self.source }
    }
}

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
    pub(super) directories: &'a UserDirectories,
}

impl Names {
    /// Returns the names of a setting without a flag.
    pub(super) const fn variable(variable: &'static str) -> Self {
        Self { flag: "", variable }
    }
}

impl Layers<'_> {
    /// Returns the value of one setting from its strongest source: flag, variable, project's file, operator's file, default.
    pub(super) fn setting<T>(
        &self,
        names: Names,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        in_file: impl Fn(&Content) -> Option<T>,
        default: T,
    ) -> Result<Setting<T>, SettingsError> {
        Ok(self
            .pick(names, flag, parse, in_file)?
            .unwrap_or(Setting { value: default, source: Source::Default }))
    }

    /// Returns the value of a setting without a default, as [`Layers::setting`] does.
    pub(super) fn optional<T>(
        &self,
        names: Names,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        in_file: impl Fn(&Content) -> Option<T>,
    ) -> Result<Setting<Option<T>>, SettingsError> {
        let found = self.pick(names, flag, parse, in_file)?;
        Ok(found.map_or(Setting { value: None, source: Source::Default }, Setting::some))
    }

    fn pick<T>(
        &self,
        names: Names,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        in_file: impl Fn(&Content) -> Option<T>,
    ) -> Result<Option<Setting<T>>, SettingsError> {
        if let Some(value) = flag {
            return Ok(Some(Setting { value, source: Source::flag(names.flag) }));
        }
        // A variable is parsed only if no flag replaces it: a flag must help against an invalid variable.
        if let Some(text) = self.environment.get(names.variable) {
            let value =
                parse(&text).map_err(|message| SettingsError::Variable { name: names.variable, message })?;
            return Ok(Some(Setting { value, source: Source::variable(names.variable) }));
        }
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        Ok(files.into_iter().find_map(|file| Some(Setting::from_file(in_file(&file.content)?, &file.path))))
    }

    /// Returns a path from the variable, or from the operator's file, where relative paths start.
    pub(super) fn path(
        &self,
        variable: &'static str,
        in_file: impl Fn(&Content) -> Option<&PathBuf>,
        default: Option<PathBuf>,
    ) -> Setting<Option<PathBuf>> {
        if let Some(path) = self.environment.path(variable) {
            return Setting { value: Some(path), source: Source::variable(variable) };
        }
        let found = self.operator.as_ref().and_then(|file| {
            let path = expand_home(in_file(&file.content)?, self.directories.home.as_deref());
            Some(Setting::from_file(Some(file.directory().join(path)), &file.path))
        });
        found.unwrap_or(Setting { value: default, source: Source::Default })
    }

    /// Returns a list of directories as [`Layers::path`] returns a path.
    pub(super) fn directories(
        &self,
        variable: &'static str,
        in_file: impl Fn(&Content) -> Option<&Vec<PathBuf>>,
    ) -> Setting<Vec<PathBuf>> {
        if let Some(value) = self.environment.paths(variable) {
            return Setting { value, source: Source::variable(variable) };
        }
        let found = self.operator.as_ref().and_then(|file| {
            let paths = in_file(&file.content)?.iter();
            let value = paths
                .map(|path| file.directory().join(expand_home(path, self.directories.home.as_deref())))
                .collect();
            Some(Setting::from_file(value, &file.path))
        });
        found.unwrap_or(Setting { value: Vec::new(), source: Source::Default })
    }
}

/// Replaces a leading `~` with the home directory. A settings file has no shell that would do it.
pub(super) fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The environment variables of the process, read once. A blank variable counts as unset.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: HashMap<OsString, OsString>,
    redactor: Redactor,
}

impl Environment {
    /// Reads the variables of the process.
    #[expect(clippy::disallowed_methods, reason = "this is the only place where variables are read")]
    pub fn from_process() -> Self {
        Self { variables: std::env::vars_os().collect(), redactor: Redactor::default() }
    }

    /// Returns the keys that stderr masks: the keys of all settings that were read from this environment.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the name of a variable that is secret by its name and whose value stands in a text.
    pub(super) fn secret_in(&self, text: &str) -> Option<String> {
        const SECRET: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
        /// A shorter value stands in many texts by chance.
        const MIN_LENGTH: usize = 8;
        let names = self.variables.keys().filter_map(|name| name.to_str());
        let mut secret = names.filter(|name| {
            let upper = name.to_uppercase();
            SECRET.iter().any(|word| upper.contains(word))
        });
        let found = secret.find(|name| {
            self.get(name).is_some_and(|value| value.len() >= MIN_LENGTH && text.contains(&value))
        });
        found.map(str::to_owned)
    }

    /// Returns a variable as text, unless it is blank. Invalid UTF-8 is replaced, so that the value is rejected and not
    /// taken as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsString::from(name).as_os_str())?.to_string_lossy();
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns a variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// Returns a variable as a list of paths, separated as in `PATH`.
    pub fn paths(&self, name: &str) -> Option<Vec<PathBuf>> {
        let value = self.variables.get(OsString::from(name).as_os_str())?;
        let paths: Vec<_> =
            std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
        (!paths.is_empty()).then_some(paths)
    }
}

#[cfg(test)]
impl Environment {
    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, redactor: Redactor::default() }
    }
}

/// The keys that must not be printed. [`Settings::read`] adds those that it finds; copies share one list.
///
/// [`Settings::read`]: super::Settings::read
#[derive(Debug, Clone, Default)]
pub struct Redactor(Arc<RwLock<Vec<Secret>>>);

impl Redactor {
    /// Adds keys.
    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        if let Ok(mut hidden) = self.0.write() {
            hidden.extend(secrets);
        }
    }

    /// Returns the keys.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.0.read().map(|hidden| hidden.clone()).unwrap_or_default()
    }

    /// Returns the text with each key masked; an empty string if the list cannot be read.
    pub fn redact(&self, text: &str) -> String {
        // Saying nothing is better than printing a key.
        let Ok(hidden) = self.0.read() else { return String::new() };
        hidden.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }
}
