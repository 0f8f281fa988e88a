//! The settings of the cache of answers. Only the operator may set them: the cache contains answers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_run::AnswerCache;

use super::{
    Row, Setting, SettingsError, Shown, Source, values,
    sources::{Layers, Names, expand_home},
};

const MAX_AGE: Names = Names { flag: "", variable: "COG_CACHE_MAX_AGE" };
const MAX_BYTES: Names = Names { flag: "", variable: "COG_CACHE_MAX_BYTES" };
const DIRECTORY: &str = "COG_CACHE_DIRECTORY";

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
    pub(super) fn read(layers: &Layers<'_>, home: Option<&Path>) -> Result<Self, SettingsError> {
        let age = layers.pick(MAX_AGE, None, values::duration, |file| Some(file.cache.max_age?.0))?;
        let bytes = layers.pick(MAX_BYTES, None, values::bytes, |file| Some(file.cache.max_bytes?.0))?;
        let max_bytes = usize::try_from(AnswerCache::DEFAULT_MAX_BYTES).unwrap_or(usize::MAX);
        Ok(Self {
            directory: directory(layers, home),
            max_age: age.unwrap_or_else(|| Setting::default(AnswerCache::DEFAULT_MAX_AGE)),
            max_bytes: bytes.unwrap_or_else(|| Setting::default(max_bytes)),
        })
    }

    /// Returns the cache in a directory, otherwise in that of the settings.
    pub fn cache(&self, directory: Option<&Path>) -> Option<AnswerCache> {
        let directory = directory.or(self.directory.value.as_deref())?;
        Some(AnswerCache::with_limits(directory, self.max_age.value, self.max_bytes.value as u64))
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 3] {
        [
            Row::new("cache.directory", &self.directory, |path| Shown::path(path.as_ref())),
            Row::new("cache.max_age", &self.max_age, |it| Shown::Text(values::show_duration(*it))),
            Row::new("cache.max_bytes", &self.max_bytes, |it| Shown::Text(values::show_bytes(*it))),
        ]
    }
}

fn directory(layers: &Layers<'_>, home: Option<&Path>) -> Setting<Option<PathBuf>> {
    if let Some(path) = layers.environment.path(DIRECTORY) {
        return Setting { value: Some(path), source: Source::variable(DIRECTORY) };
    }
    let in_file = layers.operator.as_ref().and_then(|file| {
        let path = file.content.cache.directory.as_ref()?;
        Some(Setting::from_file(Some(file.directory().join(expand_home(path, home))), &file.path))
    });
    in_file.unwrap_or_else(|| Setting::default(None))
}
