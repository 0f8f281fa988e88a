//! The settings of what is stored: the cache of answers and the run log. Only the operator may set them: both can contain inputs
//! and answers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_run::AnswerCache;

use super::{
    DisplayValue, Row, Setting, SettingsError, Source,
    sources::{Layers, Names},
    values,
};

const CACHE_MAX_AGE: Names = Names::variable("COG_CACHE_MAX_AGE");
const CACHE_MAX_BYTES: Names = Names::variable("COG_CACHE_MAX_BYTES");
const CACHE_DIRECTORY: &str = "COG_CACHE_DIRECTORY";

const LOGS_ENABLED: Names = Names::variable("COG_LOGS_ENABLED");
const LOGS_SERVER: Names = Names::variable("COG_LOGS_SERVER");
const LOGS_CONTENTS: Names = Names::variable("COG_LOGS_CONTENTS");
const LOGS_MAX_BYTES: Names = Names::variable("COG_LOGS_MAX_BYTES");
const LOGS_DIRECTORY: &str = "COG_LOGS_DIRECTORY";

/// The default maximum age of an answer in the cache.
const CACHE_DEFAULT_AGE: Duration = Duration::from_secs(24 * 3600);
/// The default maximum size of the cache.
const CACHE_DEFAULT_BYTES: usize = 256 << 20;

/// The default maximum size of the log.
const LOGS_DEFAULT_BYTES: usize = 16 << 20;

/// The settings of the cache of answers.
#[derive(Debug)]
pub struct CacheSettings {
    /// The directory; without one nothing is cached.
    pub directory: Setting<Option<PathBuf>>,
    max_age: Setting<Duration>,
    max_bytes: Setting<usize>,
}

impl CacheSettings {
    /// Reads the variables and the operator's file.
    ///
    /// # Errors
    /// A variable with an invalid value.
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            directory: layers.path(CACHE_DIRECTORY, |file| file.cache.directory.as_ref(), None),
            max_age: layers.setting(
                CACHE_MAX_AGE,
                None,
                values::duration,
                |file| Some(file.cache.max_age?.0),
                CACHE_DEFAULT_AGE,
            )?,
            max_bytes: layers.setting(
                CACHE_MAX_BYTES,
                None,
                values::bytes,
                |file| Some(file.cache.max_bytes?.0),
                CACHE_DEFAULT_BYTES,
            )?,
        })
    }

    /// Returns the cache in this directory, otherwise in the directory of the settings.
    pub fn cache(&self, directory: Option<&Path>) -> Option<AnswerCache> {
        let directory = directory.or(self.directory.value.as_deref())?;
        Some(AnswerCache::in_directory(directory, self.max_age.value, self.max_bytes.value as u64))
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 3] {
        [
            Row::new("cache.directory", &self.directory, |path| DisplayValue::path(path.as_ref())),
            Row::new("cache.max_age", &self.max_age, DisplayValue::duration),
            Row::new("cache.max_bytes", &self.max_bytes, DisplayValue::bytes),
        ]
    }
}

/// The settings of the run log.
#[derive(Debug)]
pub struct LogsSettings {
    /// Whether runs are logged.
    pub enabled: Setting<bool>,
    /// Whether runs of clients of a server are logged too.
    pub server: Setting<bool>,
    /// Whether inputs and answers are stored too.
    pub contents: Setting<bool>,
    /// The maximum size of the log.
    pub max_bytes: Setting<usize>,
    /// The directory of the log; none without a home directory.
    pub directory: Setting<Option<PathBuf>>,
}

impl LogsSettings {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        let directory = layers.directories.state.as_deref().map(|state| state.join("logs"));
        Ok(Self {
            enabled: layers.setting(LOGS_ENABLED, None, values::switch, |file| file.logs.enabled, true)?,
            server: layers.setting(LOGS_SERVER, None, values::switch, |file| file.logs.server, false)?,
            contents: layers.setting(
                LOGS_CONTENTS,
                None,
                values::switch,
                |file| file.logs.contents,
                false,
            )?,
            max_bytes: layers.setting(
                LOGS_MAX_BYTES,
                None,
                values::bytes,
                |file| Some(file.logs.max_bytes?.0),
                LOGS_DEFAULT_BYTES,
            )?,
            directory: layers.path(LOGS_DIRECTORY, |file| file.logs.directory.as_ref(), directory),
        })
    }

    /// Whether a setting of the log was set, so that a log that cannot be written is reported.
    pub fn are_set(&self) -> bool {
        let sources = [&self.enabled.source, &self.contents.source, &self.directory.source];
        sources.into_iter().any(|source| *source != Source::Default)
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 5] {
        [
            Row::new("logs.enabled", &self.enabled, DisplayValue::switch),
            Row::new("logs.server", &self.server, DisplayValue::switch),
            Row::new("logs.contents", &self.contents, DisplayValue::switch),
            Row::new("logs.max_bytes", &self.max_bytes, DisplayValue::bytes),
            Row::new("logs.directory", &self.directory, |path| DisplayValue::path(path.as_ref())),
        ]
    }
}
