//! The settings of the run log. Only the operator may set them: the log can contain inputs and answers.

use std::path::{Path, PathBuf};

use super::{
    Row, Setting, SettingsError, Shown, Source, values,
    sources::{Layers, Names, expand_home},
};

const ENABLED: Names = Names { flag: "", variable: "COG_LOGS_ENABLED" };
const CONTENTS: Names = Names { flag: "", variable: "COG_LOGS_CONTENTS" };
const MAX_BYTES: Names = Names { flag: "", variable: "COG_LOGS_MAX_BYTES" };
const DIRECTORY: &str = "COG_LOGS_DIRECTORY";

/// The default maximum size of the log.
const DEFAULT_MAX_BYTES: usize = 16 << 20;

/// The settings of the run log.
#[derive(Debug)]
pub struct LogsSettings {
    /// Whether runs are logged.
    pub enabled: Setting<bool>,
    /// Whether inputs and answers are stored too.
    pub contents: Setting<bool>,
    /// The maximum size of the log.
    pub max_bytes: Setting<usize>,
    /// The directory of the log; none without a home directory.
    pub directory: Setting<Option<PathBuf>>,
}

impl LogsSettings {
    pub(super) fn read(layers: &Layers<'_>, home: Option<&Path>) -> Result<Self, SettingsError> {
        let enabled = layers.pick(ENABLED, None, values::switch, |file| file.logs.enabled)?;
        let contents = layers.pick(CONTENTS, None, values::switch, |file| file.logs.contents)?;
        let max_bytes = layers.pick(MAX_BYTES, None, values::bytes, |file| Some(file.logs.max_bytes?.0))?;
        Ok(Self {
            enabled: enabled.unwrap_or_else(|| Setting::default(true)),
            contents: contents.unwrap_or_else(|| Setting::default(false)),
            max_bytes: max_bytes.unwrap_or_else(|| Setting::default(DEFAULT_MAX_BYTES)),
            directory: directory(layers, home),
        })
    }

    /// Whether a setting of the log was set, so that a log that cannot be written is reported.
    pub fn are_set(&self) -> bool {
        let sources = [&self.enabled.source, &self.contents.source, &self.directory.source];
        sources.into_iter().any(|source| *source != Source::Default)
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 4] {
        [
            Row::new("logs.enabled", &self.enabled, |is_on| Shown::Switch(*is_on)),
            Row::new("logs.contents", &self.contents, |is_on| Shown::Switch(*is_on)),
            Row::new("logs.max_bytes", &self.max_bytes, |size| Shown::Text(values::show_bytes(*size))),
            Row::new("logs.directory", &self.directory, |path| Shown::path(path.as_ref())),
        ]
    }
}

fn directory(layers: &Layers<'_>, home: Option<&Path>) -> Setting<Option<PathBuf>> {
    if let Some(path) = layers.environment.path(DIRECTORY) {
        return Setting { value: Some(path), source: Source::variable(DIRECTORY) };
    }
    let in_file = layers.operator.as_ref().and_then(|file| {
        let path = file.content.logs.directory.as_ref()?;
        Some(Setting::from_file(Some(file.directory().join(expand_home(path, home))), &file.path))
    });
    in_file.unwrap_or_else(|| Setting::default(home.map(|home| home.join(".local/state/cog/logs"))))
}
