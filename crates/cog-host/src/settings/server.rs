//! Settings of `cog serve`, from flags, `COG_SERVE_…`, `[server]` of a settings file, and defaults.

mod setting;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use cog_run::{ContextLimits, sessions::SessionSettings};
use cog_server::ServerSettings;

use super::{Row, Setting, Settings, SettingsError, Source, file::SettingsFile};

pub use self::setting::{SERVER_SETTINGS, ServerSetting};

/// The settings of `cog serve`.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The IP address to listen on.
    pub listen: IpAddr,
    /// The port; 0 = any free port.
    pub port: u16,
    /// The worker threads; 0 = one per processor.
    pub workers: usize,
    /// The file of tokens that clients authenticate with.
    pub token_file: Option<PathBuf>,
    /// The directory to store sessions in.
    pub state_dir: Option<PathBuf>,
    /// The NATS servers through which servers share their sessions; none shares nothing.
    pub nats: Vec<String>,
    /// Whether interrupted streams can be resumed.
    pub resume: bool,
    /// Limits of requests, streams and connections.
    pub server: ServerSettings,
    /// Limits of sessions.
    pub sessions: SessionSettings,
    /// Limits of the context that one client stores.
    pub context: ContextLimits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            workers: 0,
            token_file: None,
            state_dir: None,
            nats: Vec::new(),
            resume: true,
            server: ServerSettings::default(),
            sessions: SessionSettings::default(),
            context: ContextLimits::default(),
        }
    }
}

impl ServeSettings {
    /// Returns the socket address to listen on.
    pub fn socket_addr(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }
}

/// Returns the first key that only the operator may set.
pub(super) fn operators_key(section: &toml::Table) -> Option<&str> {
    let mut keys = section.keys().map(String::as_str);
    keys.find(|key| SERVER_SETTINGS.iter().any(|setting| setting.is_operators && setting.key() == *key))
}

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

#[cfg(test)]
mod tests;
