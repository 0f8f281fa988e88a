//! Reads the settings of `cog serve` from their sources.

use super::{SERVER_SETTINGS, ServeSettings, ServerSetting};
use crate::settings::{Row, Setting, Settings, SettingsError, Source, file::SettingsFile};

impl ServeSettings {
    /// Reads each setting from its strongest source; `flag` returns the value of a flag.
    ///
    /// # Errors
    /// An invalid value, or an unknown key in a settings file.
    pub fn read(
        settings: &Settings,
        flag: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<Row>), SettingsError> {
        settings.reject_unknown_server_keys()?;
        let mut serve = Self::default();
        let mut rows = Vec::new();
        for setting in SERVER_SETTINGS {
            let Setting { value, source } = settings.strongest(setting, flag(setting.flag));
            if let Some(text) = value {
                setting.set(&mut serve, &text).map_err(|message| invalid(&source, setting, message))?;
            }
            let name = format!("server.{}", setting.key());
            rows.push(Row { name, value: setting.show(&mut serve), source });
        }
        Ok((serve, rows))
    }
}

impl Settings {
    fn strongest(&self, setting: &ServerSetting, flag: Option<String>) -> Setting<Option<String>> {
        if let Some(value) = flag {
            return Setting { value: Some(value), source: Source::flag(format!("--{}", setting.flag)) };
        }
        let variable = setting.variable();
        if let Some(value) = self.environment.get(&variable) {
            return Setting { value: Some(value), source: Source::variable(variable) };
        }
        for file in [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten() {
            if let Some(value) = file.content.server.get(&setting.key()) {
                return Setting::from_file(Some(text(value)), &file.path);
            }
        }
        Setting::default(None)
    }

    fn reject_unknown_server_keys(&self) -> Result<(), SettingsError> {
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        files.into_iter().try_for_each(known_keys)
    }
}

fn known_keys(file: &SettingsFile) -> Result<(), SettingsError> {
    let known: Vec<_> = SERVER_SETTINGS.iter().map(ServerSetting::key).collect();
    match file.content.server.keys().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) => {
            let message = format!("unknown key `server.{key}`; known keys: {}", known.join(", "));
            Err(SettingsError::Server { file: Some(file.path.display().to_string()), message })
        }
    }
}

/// Converts a value of a file to the form of a flag.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(is_on) => is_on.to_string(),
        toml::Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        // No setting accepts other types, and each reports it.
        other => other.type_str().to_owned(),
    }
}

fn invalid(source: &Source, setting: &ServerSetting, message: String) -> SettingsError {
    let (message, file) = match source {
        Source::Flag(name) | Source::Variable(name) => (format!("{name}: {message}"), None),
        _ => (format!("server.{}: {message}", setting.key()), Some(source.to_string())),
    };
    SettingsError::Server { file, message }
}
