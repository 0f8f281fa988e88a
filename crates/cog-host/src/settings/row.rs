//! One setting as `cog config` shows it.

use cog_json::{ToJson, Writer};

use super::{Setting, Shown, Source};

/// One setting as `cog config` shows it, with keys hidden.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name: `model`, `OPENAI_API_KEY`.
    pub name: String,
    /// Its value; `***` for a key.
    pub value: Shown,
    /// Its source.
    pub source: Source,
}

/// Written by hand: the source is written as text.
impl ToJson for Row {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("value", &self.value);
            w.field("source", &self.source.to_string());
        });
    }
}

impl Row {
    /// Creates the row of a setting.
    pub(super) fn new<T>(name: &str, setting: &Setting<T>, show: impl Fn(&T) -> Shown) -> Self {
        Self { name: name.to_owned(), value: show(&setting.value), source: setting.source.clone() }
    }
}
