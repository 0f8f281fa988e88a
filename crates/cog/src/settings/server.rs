//! Settings of `cog serve`, from flags, `COG_SERVE_…`, `[server]` of a settings file, and defaults.

mod read;
mod setting;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use cog_run::{ContextLimits, sessions::SessionSettings};
use cog_server::ServerSettings;

pub(crate) use self::setting::{SERVER_SETTINGS, ServerSetting};

/// The settings of `cog serve`.
#[derive(Debug, Clone)]
pub(crate) struct ServeSettings {
    /// The IP address to listen on.
    pub(crate) listen: IpAddr,
    /// The port; 0 = any free port.
    pub(crate) port: u16,
    /// The worker threads; 0 = one per processor.
    pub(crate) workers: usize,
    /// The file of tokens that clients authenticate with.
    pub(crate) token_file: Option<PathBuf>,
    /// The directory to store sessions in.
    pub(crate) state_dir: Option<PathBuf>,
    /// Whether interrupted streams can be resumed.
    pub(crate) resume: bool,
    /// Limits of requests, streams and connections.
    pub(crate) server: ServerSettings,
    /// Limits of sessions.
    pub(crate) sessions: SessionSettings,
    /// Limits of the context that one client stores.
    pub(crate) context: ContextLimits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            workers: 0,
            token_file: None,
            state_dir: None,
            resume: true,
            server: ServerSettings::default(),
            sessions: SessionSettings::default(),
            context: ContextLimits::default(),
        }
    }
}

impl ServeSettings {
    /// Returns the socket address to listen on.
    pub(crate) fn socket_addr(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }
}

#[cfg(test)]
mod tests;
