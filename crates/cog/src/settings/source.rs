//! A value, and where it came from.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Where a setting came from, the strongest first (docs/spec/settings.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flag: `--model`.
    Flag(&'static str),
    /// A variable of the environment: `LLM_MODEL`.
    Variable(&'static str),
    /// A settings file.
    File(PathBuf),
    /// Nobody set it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(name) | Source::Variable(name) => f.write_str(name),
            Source::File(path) => path.display().fmt(f),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A setting: its value, and where that came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it came from.
    pub(crate) source: Source,
}

impl<T> Setting<T> {
    /// The value that nobody set.
    pub(crate) fn default(value: T) -> Self {
        Self { value, source: Source::Default }
    }

    /// A value of a file.
    pub(crate) fn of_file(value: T, file: &Path) -> Self {
        Self { value, source: Source::File(file.to_owned()) }
    }

    /// The same setting as one that may be absent.
    pub(crate) fn some(self) -> Setting<Option<T>> {
        Setting { value: Some(self.value), source: self.source }
    }
}
