//! The settings files: `./cog.toml`, and the operator's own `~/.config/cog/config.toml`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use cog_module::files::{self, FileError};
use cog_provider::vendors::Vendor;
use serde::Deserialize;

use super::{KNOBS, SettingsError, duration, media::MediaContent};

/// The largest settings file.
const LIMIT: u64 = 256 * 1024;

/// A settings file that was read.
#[derive(Debug)]
pub(super) struct SettingsFile {
    /// Where it lies.
    pub(super) path: PathBuf,
    /// What it sets.
    pub(super) content: Content,
}

/// What a settings file may set. An unknown key is an error: a misspelt setting must not be silent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) timeout: Option<Span>,
    pub(super) first_token: Option<Span>,
    pub(super) stall: Option<Span>,
    pub(super) retries: Option<u32>,
    pub(super) breaker_failures: Option<u32>,
    pub(super) breaker_pause: Option<Span>,
    pub(super) strict: Option<bool>,
    pub(super) modules: Option<Vec<PathBuf>>,
    #[serde(default)]
    pub(super) media: MediaContent,
    #[serde(default)]
    pub(super) server: toml::Table,
    #[serde(default)]
    pub(super) providers: BTreeMap<String, VendorContent>,
}

/// `[providers.NAME]`: what a settings file may set for one vendor.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VendorContent {
    pub(super) key: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) model: Option<String>,
}

/// A length of time, written `30s`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Span(pub(super) Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        duration::parse(&text).map(Span)
    }
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Whoever wrote the working directory: a project, perhaps a stranger's.
    Project,
    /// The operator.
    Operator,
}

impl SettingsFile {
    /// Reads a settings file; none where there is none.
    pub(super) fn read(path: PathBuf, owner: Owner) -> Result<Option<Self>, SettingsError> {
        let text = match files::read_text(&path, LIMIT) {
            Ok(text) => text,
            Err(FileError::Missing | FileError::Empty) => return Ok(None),
            Err(error) => return Err(SettingsError::Unreadable { path, message: error.to_string() }),
        };
        let content = toml::from_str(&text).map_err(|error| syntax(&path, &text, &error))?;
        let file = Self { path, content };
        if owner == Owner::Project {
            file.refuse_what_is_the_operators()?;
        }
        file.refuse_unknown_providers()?;
        Ok(Some(file))
    }

    /// The file's folder, to which its relative paths refer.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Addresses, keys and roots come from the operator alone (docs/spec/settings.md).
    fn refuse_what_is_the_operators(&self) -> Result<(), SettingsError> {
        let forbidden = |key: String| SettingsError::Forbidden { path: self.path.clone(), key };
        if self.content.modules.is_some() {
            return Err(forbidden("modules".to_owned()));
        }
        if self.content.media != MediaContent::default() {
            return Err(forbidden("media".to_owned()));
        }
        let is_operators = |key: &&String| KNOBS.iter().any(|knob| knob.is_operators && knob.key == *key);
        if let Some(key) = self.content.server.keys().find(is_operators) {
            return Err(forbidden(format!("server.{key}")));
        }
        for (name, vendor) in &self.content.providers {
            if vendor.key.is_some() {
                return Err(forbidden(format!("providers.{name}.key")));
            }
            if vendor.base_url.is_some() {
                return Err(forbidden(format!("providers.{name}.base_url")));
            }
        }
        Ok(())
    }

    fn refuse_unknown_providers(&self) -> Result<(), SettingsError> {
        match self.content.providers.keys().find(|name| Vendor::named(name).is_none()) {
            Some(name) => Err(SettingsError::UnknownProvider { path: self.path.clone(), name: name.clone() }),
            None => Ok(()),
        }
    }
}

fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> SettingsError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
    let message = error.message().replace('\n', " ");
    SettingsError::Syntax { path: path.to_owned(), line, message }
}
