use std::{fmt, net::SocketAddr, str::FromStr, time::Duration};

use cog_run::{BudgetLimits, ModelAccess};
use thiserror::Error;

use crate::{
    UploadSettings,
    guard::{Access, InvalidOrigin, MissingAuthError, Origins, Tokens},
};

/// The limits of a server, with their defaults (docs/server.md).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Authentication and allowed hosts and origins.
    pub access: AccessSettings,
    /// The maximum size of a request body, in bytes: 30 MiB.
    pub max_body_bytes: usize,
    /// The maximum size of all request bodies over 64 KiB whose runs have not ended, in bytes: 64 MiB. Further ones wait.
    pub max_body_bytes_total: usize,
    /// The maximum size of a request's headers, in bytes: 64 KiB.
    pub max_header_bytes: usize,
    /// The maximum size of a WebSocket message, in bytes: 1 MiB.
    pub max_message_bytes: usize,
    /// The maximum number of open connections: 12,000. Further ones wait.
    pub max_connections: usize,
    /// The maximum number of streams of one client: 32.
    pub max_streams_per_client: usize,
    /// The maximum number of streams: 10,000.
    pub max_streams: usize,
    /// The maximum number of requests of one client per second: 1,000. 0 = unlimited.
    pub requests_per_second: u32,
    /// The maximum burst of requests of a client that was idle: 2,000.
    pub request_burst: u32,
    /// The timeout for the headers of a request, and for an idle connection: 30 s.
    pub header_timeout: Duration,
    /// The timeout for the body of a request: 30 s.
    pub body_timeout: Duration,
    /// The interval of keep-alives in a stream without chunks (ruling R50): 15 s.
    pub keepalive_interval: Duration,
    /// The maximum time that a WebSocket may be idle between two runs (ruling R53): 60 s.
    pub websocket_idle_timeout: Duration,
    /// The timeout of a write: how long a client may read none of the pending bytes: 30 s.
    pub write_timeout: Duration,
    /// The base URL of the server, for the URLs of media. By default `http://` and the `Host` of the request.
    pub public_url: Option<String>,
    /// What becomes of the requests of OpenAI's and Anthropic's clients.
    pub openai: OpenAiSettings,
    /// Whether clients of MCP may read the modules as skills, with their prompts: no by default.
    pub mcp_skills: bool,
    /// The limits of stored uploads and generated media.
    pub uploads: UploadSettings,
    /// The maximum of `max_attempts` of a request: 10.
    pub max_attempts: u32,
    /// The budget of each client in a period. None by default.
    pub client_budget: BudgetLimits,
    /// The period after which the budget of a client is full again: 24 hours.
    pub client_budget_period: Duration,
    /// The time after a shutdown is requested in which new connections are still served, and `/ready` returns 503: none.
    pub drain_delay: Duration,
    /// The time that running requests have to end after that: 10 s.
    pub shutdown_timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            access: AccessSettings::default(),
            max_body_bytes: 30 << 20,
            max_body_bytes_total: 64 << 20,
            max_header_bytes: 64 << 10,
            max_message_bytes: 1 << 20,
            max_connections: 12_000,
            max_streams_per_client: 32,
            max_streams: 10_000,
            requests_per_second: 1_000,
            request_burst: 2_000,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            keepalive_interval: Duration::from_secs(15),
            websocket_idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            public_url: None,
            openai: OpenAiSettings::default(),
            mcp_skills: false,
            uploads: UploadSettings::default(),
            max_attempts: 10,
            client_budget: BudgetLimits::default(),
            client_budget_period: Duration::from_secs(24 * 3600),
            drain_delay: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

/// What becomes of the requests of OpenAI's clients (docs/openai.md).
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// Where system messages go.
    pub system: SystemMessages,
    /// Whether sampling parameters are accepted without effect, with a warning: yes by default.
    pub is_lenient: bool,
}

impl Default for OpenAiSettings {
    fn default() -> Self {
        Self { system: SystemMessages::default(), is_lenient: true }
    }
}

/// Where the system messages of a client go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SystemMessages {
    /// Into the prompt, after the input, as the caller's words.
    #[default]
    Append,
    /// Into this field of the input.
    Field(String),
    /// Nowhere: they are an error.
    Refuse,
}

impl FromStr for SystemMessages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("field:")) {
            ("append", _) => Ok(Self::Append),
            ("refuse", _) => Ok(Self::Refuse),
            (_, Some(name)) if !name.is_empty() => Ok(Self::Field(name.to_owned())),
            _ => Err(format!("`{text}` is not valid: use append, refuse or field:NAME")),
        }
    }
}

impl fmt::Display for SystemMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append => f.write_str("append"),
            Self::Field(name) => write!(f, "field:{name}"),
            Self::Refuse => f.write_str("refuse"),
        }
    }
}

/// Authentication and allowed hosts and origins. By default only this machine has access.
#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The tokens. Every request must send one of them. `None` disables authentication.
    pub tokens: Option<Tokens>,
    /// The providers and models that a client may name, unless its token has a list. `None` allows all.
    pub models: Option<ModelAccess>,
    /// Whether a server without tokens may listen on an address that other machines can reach.
    pub is_insecure: bool,
    /// Additional allowed `Host` values: `cog.example`.
    pub hosts: Vec<String>,
    /// The allowed origins of other pages: `https://app.example`.
    pub origins: Vec<String>,
}

/// Why a server cannot start with its settings.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Other machines could use it without authentication.
    #[error(transparent)]
    MissingAuth(#[from] MissingAuthError),
    /// Other machines could use the workbench without authentication.
    #[error("other machines can reach {0}, and the workbench is for clients with a token")]
    Workbench(SocketAddr),
    /// An invalid origin.
    #[error(transparent)]
    Origin(#[from] InvalidOrigin),
    /// The listener has no local address.
    #[error("the listener has no local address: {0}")]
    Listener(#[from] std::io::Error),
}

impl SetupError {
    /// Returns what to do.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::MissingAuth(error) => error.suggestion(),
            Self::Workbench(_) => "Set --token-file FILE, or listen on 127.0.0.1.",
            Self::Origin(_) => "Use a form such as `--allow-origin https://app.example`.",
            Self::Listener(_) => "Bind the listener first.",
        }
    }
}

impl AccessSettings {
    /// Checks whether a server that listens on this address may have these settings.
    ///
    /// # Errors
    /// Other machines could use it without authentication, or an origin is not valid.
    pub fn check(&self, address: SocketAddr) -> Result<(), SetupError> {
        self.guards(address).map(drop)
    }

    /// Checks whether a server that listens on this address may have a workbench: on loopback, or with tokens. `is_insecure` does
    /// not count, because the workbench reads the log and may write files.
    ///
    /// # Errors
    /// Other machines could use it without authentication.
    pub fn check_workbench(&self, address: SocketAddr) -> Result<(), SetupError> {
        match self.tokens.is_some() || address.ip().to_canonical().is_loopback() {
            true => Ok(()),
            false => Err(SetupError::Workbench(address)),
        }
    }

    pub(crate) fn guards(&self, address: SocketAddr) -> Result<(Access, Origins), SetupError> {
        let access = Access::at(address, self.tokens.clone(), self.is_insecure)?;
        Ok((access, Origins::new(&self.origins)?))
    }
}
