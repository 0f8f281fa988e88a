//! A value and its source.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

/// The source of a setting, the strongest first (docs/spec/settings.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag: `--model`.
    Flag(Cow<'static, str>),
    /// An environment variable: `LLM_MODEL`.
    Variable(Cow<'static, str>),
    /// A settings file.
    File(PathBuf),
    /// The earlier run that this one continues.
    FormerRun,
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
            Source::FormerRun => f.write_str("the earlier run"),
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
