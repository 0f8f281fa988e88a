//! A server that the operator configured.

use std::{path::PathBuf, sync::Arc, time::Duration};

use cog_spec::{Code, Secret};
use thiserror::Error;

use crate::person::Person;

/// An MCP server.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// The name, with which the names of its tools begin.
    pub name: String,
    /// How to reach it.
    pub transport: McpTransport,
    /// The time limit for starting it and listing its tools.
    pub startup_timeout: Duration,
    /// Whether the connection begins with `initialize`, as revisions before 2026-07-28 require, without a try of the current one.
    pub initialize: bool,
    /// Whether nothing runs without it.
    pub required: bool,
    /// Which of its tools are offered, and how they are called.
    pub tools: ToolRules,
    /// Whether it may ask the model of the run that calls it. Its calls then run one at a time, so that the run is known.
    pub sampling: bool,
    /// The directories that it learns of when it asks for roots.
    pub roots: Vec<PathBuf>,
    /// Whom it may ask; if there is no one, its questions are declined.
    pub person: Option<Arc<dyn Person>>,
}

/// What the operator sets about the tools of a server. Its lists contain the names that the server gives its tools, or patterns
/// in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRules {
    /// The tools that are offered.
    pub allow: Vec<String>,
    /// The tools whose calls a person must confirm.
    pub confirm: Vec<String>,
    /// Whether calls that only read may run at the same time.
    pub parallel: bool,
    /// The time limit of a call; the runtime's if there is none.
    pub call_timeout: Option<Duration>,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self { allow: vec!["*".to_owned()], confirm: Vec::new(), parallel: true, call_timeout: None }
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program, which communicates over its standard input and output.
    Stdio {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Its complete environment. The keys of providers are only in it if the operator adds them.
        env: Vec<(String, String)>,
        /// Its working directory. It is never inherited: programs such as `npx` and `python -m` run files that they find
        /// there, and a user stands in directories that others wrote.
        directory: PathBuf,
    },
    /// A URL, for streamable HTTP.
    Http {
        /// The URL.
        url: String,
        /// The token for the header `Authorization: Bearer`.
        token: Option<Secret>,
        /// Further headers of each request.
        headers: Vec<(String, Secret)>,
        /// How tokens are obtained if `token` is not set.
        oauth: OAuth,
    },
}

/// How a server is signed in to.
#[derive(Debug, Clone, Default)]
pub struct OAuth {
    /// The client that the authorization server knows; if there is none, `cog` registers itself (RFC 7591).
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// Whether the client signs in as itself, and no person does.
    pub client_credentials: bool,
    /// The scopes to request; those that the server names if there are none.
    pub scopes: Vec<String>,
    /// The issuer that the authorization server must have. It may then have a private address.
    pub issuer: Option<String>,
    /// The port at which the browser returns; a free one if there is none.
    pub callback_port: Option<u16>,
    /// The directory of the tokens; without one, a token lasts as long as the process.
    pub directory: Option<PathBuf>,
}

impl McpServer {
    /// Creates a server with default rules.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            startup_timeout: Duration::from_secs(30),
            initialize: false,
            required: false,
            tools: ToolRules::default(),
            sampling: false,
            roots: Vec::new(),
            person: None,
        }
    }

    /// Returns how the names of its tools begin for models.
    pub fn prefix(&self) -> String {
        prefix(&self.name)
    }

    /// Returns the tokens and the values of headers. They must never appear in a message or log.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (secrets, headers) = match &self.transport {
            McpTransport::Http { token, headers, oauth, .. } => {
                ([token.as_ref(), oauth.client_secret.as_ref()], headers.as_slice())
            }
            McpTransport::Stdio { .. } => ([None, None], [].as_slice()),
        };
        secrets.into_iter().flatten().chain(headers.iter().map(|(_, value)| value))
    }
}

impl McpTransport {
    /// Returns a URL without a token.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), token: None, headers: Vec::new(), oauth: OAuth::default() }
    }

    /// Returns whether each call uses the network.
    pub(crate) fn uses_network(&self) -> bool {
        matches!(self, Self::Http { .. })
    }
}

// Errors of servers.

/// Why the tools of a server are not available.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// The program cannot be started.
    #[error("the MCP server `{server}` cannot be started: `{command}`: {source}")]
    Start {
        /// The name of the server.
        server: String,
        /// The program.
        command: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The server does not reply as the protocol requires.
    #[error("the MCP server `{server}` is not available: {message}")]
    Protocol {
        /// The name of the server.
        server: String,
        /// What went wrong.
        message: String,
    },
    /// The server requires a token, and there is none that it accepts.
    #[error("the MCP server `{server}` requires a sign-in: {message}")]
    SignIn {
        /// The name of the server.
        server: String,
        /// What went wrong.
        message: String,
    },
    /// The server did not list its tools in time.
    #[error("the MCP server `{server}` did not list its tools within {} s{last_words}", limit.as_secs_f64())]
    Timeout {
        /// The name of the server.
        server: String,
        /// The limit.
        limit: Duration,
        /// The last lines that it wrote to stderr, after a separator; empty if there are none.
        last_words: String,
    },
}

impl McpError {
    /// Returns the error code of the specification.
    pub const fn code(&self) -> Code {
        match self {
            Self::Start { .. } | Self::Protocol { .. } | Self::SignIn { .. } => Code::ProviderUnavailable,
            Self::Timeout { .. } => Code::Timeout,
        }
    }

    /// Returns a suggestion for fixing the error.
    pub fn suggestion(&self) -> String {
        let text = match self {
            Self::Start { .. } => "Check `command` in the table of the server in the settings file.",
            Self::SignIn { server, .. } => {
                return format!(
                    "Run `cog mcp login {server}`, or set `token` or `headers` in the settings file."
                );
            }
            Self::Protocol { message, .. } if message.contains("401") || message.contains("403") => {
                "Set `token` or `headers` in the table of the server in the settings file."
            }
            Self::Protocol { .. } => {
                "Check the table of the server in the settings file; -vv shows all that the server writes to stderr."
            }
            Self::Timeout { .. } => {
                "Raise `startup_timeout` in the table of the server, or check the server."
            }
        };
        text.to_owned()
    }
}

/// The maximum number of characters that a message repeats of what a server wrote.
const MAX_TEXT: usize = 2000;

/// Returns a string in one line, truncated.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
/// Returns how the names of a server's tools begin for models.
pub(crate) fn prefix(server: &str) -> String {
    format!("{}__", accepted(server))
}

/// Returns a name with `_` for each character that vendors do not accept.
pub(crate) fn accepted(name: &str) -> String {
    name.replace(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-'), "_")
}
