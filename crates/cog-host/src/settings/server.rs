//! Settings of `cog serve`, from flags, `COG_SERVE_…`, `[server]` of a settings file, and defaults.

mod address;
mod read;
mod setting;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use cog_run::{ContextLimits, sessions::SessionSettings};
use cog_server::ServerSettings;

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
    let is_operators =
        |key: &&String| SERVER_SETTINGS.iter().any(|setting| setting.is_operators && setting.key() == **key);
    section.keys().find(is_operators).map(String::as_str)
}

#[cfg(test)]
mod tests;
