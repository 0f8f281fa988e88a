use std::{net::SocketAddr, time::Duration};

use thiserror::Error;

use crate::{
    UploadSettings,
    guard::{Access, InvalidOrigin, MissingAuthError, Origins, Tokens},
};

/// Every limit of a server, each with its default (docs/server.md).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Who may ask.
    pub access: AccessSettings,
    /// The largest body of a request, in bytes: 30 MiB.
    pub max_body_bytes: usize,
    /// The largest head of a request, in bytes: 64 KiB.
    pub max_header_bytes: usize,
    /// The largest WebSocket message, in bytes: 1 MiB.
    pub max_message_bytes: usize,
    /// The connections that are served at once: 12,000. More wait.
    pub max_connections: usize,
    /// The streams of one client at once: 32.
    pub max_streams_per_client: usize,
    /// The streams of all clients at once: 10,000.
    pub max_streams: usize,
    /// The requests of one client a second, 0 for as many as it likes: 1,000.
    pub requests_per_second: u32,
    /// How many requests a client that was quiet may make at once: 2,000.
    pub request_burst: u32,
    /// The longest that the head of a request may take, and a connection may stand idle: 30 s.
    pub header_timeout: Duration,
    /// The longest that the body of a request may take: 30 s.
    pub body_timeout: Duration,
    /// After how long without a chunk a stream shows that it lives (ruling R50): 15 s.
    pub heartbeat: Duration,
    /// How long a WebSocket may stand idle between two runs (ruling R53): 60 s.
    pub socket_idle: Duration,
    /// How long a reader may take nothing of what is there for it: 30 s.
    pub slow_reader: Duration,
    /// The address that clients know the server by, for the addresses of media; none for `http://` and the `Host` of
    /// each request.
    pub public_url: Option<String>,
    /// What is kept of uploads, and of what runs have made.
    pub uploads: UploadSettings,
    /// How long what is under way may go on once the server is told to end: 10 s.
    pub drain: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            access: AccessSettings::default(),
            max_body_bytes: 30 << 20,
            max_header_bytes: 64 << 10,
            max_message_bytes: 1 << 20,
            max_connections: 12_000,
            max_streams_per_client: 32,
            max_streams: 10_000,
            requests_per_second: 1_000,
            request_burst: 2_000,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            socket_idle: Duration::from_secs(60),
            slow_reader: Duration::from_secs(30),
            public_url: None,
            uploads: UploadSettings::default(),
            drain: Duration::from_secs(10),
        }
    }
}

/// Who may ask a server: everybody on this machine, until said otherwise.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The tokens, one of which every request must bring; none for a server that stands open.
    pub tokens: Option<Tokens>,
    /// A server without tokens may be reached from other machines.
    pub is_insecure: bool,
    /// Further names under which the server is asked, beside its address: `cog.example`.
    pub hosts: Vec<String>,
    /// The origins of other sites' pages that may ask from a browser: `https://app.example`.
    pub origins: Vec<String>,
}

/// Why a server cannot be set up as its settings say.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// It would stand open to other machines.
    #[error(transparent)]
    MissingAuth(#[from] MissingAuthError),
    /// An origin that is none.
    #[error(transparent)]
    Origin(#[from] InvalidOrigin),
    /// The listener does not say where it listens.
    #[error("the listener has no address: {0}")]
    Listener(#[from] std::io::Error),
}

impl SetupError {
    /// What to do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::MissingAuth(error) => error.suggestion(),
            Self::Origin(_) => "write --allow-origin https://app.example",
            Self::Listener(_) => "bind the listener first",
        }
    }
}

impl AccessSettings {
    /// Whether a server that listens here may be served with these settings.
    ///
    /// # Errors
    /// It would stand open to other machines, or an origin is none.
    pub fn check(&self, address: SocketAddr) -> Result<(), SetupError> {
        self.guards(address).map(drop)
    }

    pub(crate) fn guards(&self, address: SocketAddr) -> Result<(Access, Origins), SetupError> {
        let access = Access::at(address, self.tokens.clone(), self.is_insecure)?;
        Ok((access, Origins::new(&self.origins)?))
    }
}
