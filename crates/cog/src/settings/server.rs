//! What `cog serve` is set up with: flag, `COG_SERVE_…`, `[server]` of a settings file, default.

mod amount;
mod knob;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use cog_run::sessions::SessionSettings;
use cog_server::ServerSettings;

use super::{Row, Setting, Settings, SettingsError, SettingsFile, Source};

pub(super) use self::amount::{bytes, show_bytes};
pub(crate) use self::knob::{KNOBS, Knob};

/// What a server is set up with.
#[derive(Debug, Clone)]
pub(crate) struct Serving {
    /// Where it listens.
    pub(crate) listen: IpAddr,
    /// At which port; 0 for any that is free.
    pub(crate) port: u16,
    /// How many threads work; 0 for as many as there are processors.
    pub(crate) workers: usize,
    /// The file of tokens, one of which every request must bring.
    pub(crate) token_file: Option<PathBuf>,
    /// Where sessions are kept on disk.
    pub(crate) state_dir: Option<PathBuf>,
    /// Whether a stream that was cut can be resumed.
    pub(crate) recovery: bool,
    /// Limits of requests, streams and connections.
    pub(crate) server: ServerSettings,
    /// Limits of sessions.
    pub(crate) sessions: SessionSettings,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            workers: 0,
            token_file: None,
            state_dir: None,
            recovery: true,
            server: ServerSettings::default(),
            sessions: SessionSettings::default(),
        }
    }
}

impl Serving {
    /// The strongest value of each setting; `flag` gives what was typed.
    ///
    /// # Errors
    /// A value that cannot be understood, or a file that sets what it may not.
    pub(crate) fn read(
        settings: &Settings,
        flag: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<Row>), SettingsError> {
        settings.refuse_unknown_server_keys()?;
        let mut serving = Self::default();
        let mut rows = Vec::new();
        for knob in KNOBS {
            let Setting { value, source } = settings.strongest(knob, flag(knob.flag));
            if let Some(text) = value {
                knob.set(&mut serving, &text).map_err(|message| wrong(&source, knob, message))?;
            }
            rows.push(Row { name: format!("server.{}", knob.key), value: knob.show(&mut serving), source });
        }
        Ok((serving, rows))
    }

    /// Where to listen.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }
}

impl Settings {
    fn strongest(&self, knob: &Knob, flag: Option<String>) -> Setting<Option<String>> {
        if let Some(value) = flag {
            return Setting { value: Some(value), source: Source::Flag(knob.flag) };
        }
        if let Some(value) = self.environment.get(knob.variable) {
            return Setting { value: Some(value), source: Source::Variable(knob.variable) };
        }
        for file in [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten() {
            if let Some(value) = file.content.server.get(knob.key) {
                return Setting::of_file(Some(text(value)), &file.path);
            }
        }
        Setting::default(None)
    }

    fn refuse_unknown_server_keys(&self) -> Result<(), SettingsError> {
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        files.into_iter().try_for_each(known_keys)
    }
}

fn known_keys(file: &SettingsFile) -> Result<(), SettingsError> {
    match file.content.server.keys().find(|key| !KNOBS.iter().any(|knob| knob.key == *key)) {
        None => Ok(()),
        Some(key) => {
            let known: Vec<_> = KNOBS.iter().map(|knob| knob.key).collect();
            let message = format!("`server.{key}` is not known; there are {}", known.join(", "));
            Err(SettingsError::Server { place: Some(file.path.display().to_string()), message })
        }
    }
}

/// A value of a file as it would be typed.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(is_on) => is_on.to_string(),
        toml::Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        // No setting takes any other kind, and each says so.
        other => other.type_str().to_owned(),
    }
}

fn wrong(source: &Source, knob: &Knob, message: String) -> SettingsError {
    let (message, place) = match source {
        Source::Flag(flag) => (format!("--{flag}: {message}"), None),
        Source::Variable(name) => (format!("{name}: {message}"), None),
        _ => (format!("server.{}: {message}", knob.key), Some(source.to_string())),
    };
    SettingsError::Server { place, message }
}

#[cfg(test)]
mod tests;
