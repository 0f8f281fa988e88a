//! The value of a setting as `cog config` shows it.

use std::{fmt, path::Path};

use cog_json::{ToJson, Writer};

/// The value of a setting: as text in the form in which it is set, in JSON with its own type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// Not set: `-`, null.
    Nothing,
    /// A switch.
    Switch(bool),
    /// A number.
    Count(u64),
    /// A text, also one with a unit: `30s`, `256MiB`.
    Text(String),
    /// A list; `-` and `[]` if it is empty.
    List(Vec<String>),
}

impl Shown {
    /// Returns the text of a value, if it is set.
    pub(super) fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Text(text.to_string()))
    }

    /// Returns the text of a path, if it is set.
    pub(super) fn path(path: Option<impl AsRef<Path>>) -> Self {
        Self::maybe(path.map(|path| path.as_ref().display().to_string()))
    }

    /// Returns the texts of several values.
    pub(super) fn list(items: impl IntoIterator<Item = impl ToString>) -> Self {
        Self::List(items.into_iter().map(|item| item.to_string()).collect())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::Switch(is_on) => is_on.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(items) if items.is_empty() => f.write_str("-"),
            Self::List(items) => f.write_str(&items.join(", ")),
        }
    }
}

/// Written by hand: a value without a name for its variant.
impl ToJson for Shown {
    fn write_json(&self, w: &mut Writer<'_>) {
        match self {
            Self::Nothing => w.null(),
            Self::Switch(is_on) => is_on.write_json(w),
            Self::Count(count) => count.write_json(w),
            Self::Text(text) => text.write_json(w),
            Self::List(items) => items.write_json(w),
        }
    }
}
