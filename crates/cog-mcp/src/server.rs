//! A server that the operator configured.

use std::{path::PathBuf, time::Duration};

use cog_spec::{Code, Secret};
use thiserror::Error;

/// An MCP server.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// The name, with which the names of its tools begin.
    pub name: String,
    /// How to reach it.
    pub transport: McpTransport,
    /// The time limit for starting it and listing its tools.
    pub startup_timeout: Duration,
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
    },
}

impl McpServer {
    /// Returns the token, if there is one. It must never appear in a message or log.
    pub fn token(&self) -> Option<&Secret> {
        match &self.transport {
            McpTransport::Http { token, .. } => token.as_ref(),
            McpTransport::Stdio { .. } => None,
        }
    }
}

impl McpTransport {
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
    /// The server did not list its tools in time.
    #[error("the MCP server `{server}` did not list its tools within {} s", limit.as_secs_f64())]
    Timeout {
        /// The name of the server.
        server: String,
        /// The limit.
        limit: Duration,
    },
}

impl McpError {
    /// Returns the error code of the specification.
    pub const fn code(&self) -> Code {
        match self {
            Self::Start { .. } | Self::Protocol { .. } => Code::ProviderUnavailable,
            Self::Timeout { .. } => Code::Timeout,
        }
    }

    /// Returns a suggestion for fixing the error.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Start { .. } => "Check `command` in the table of the server in the settings file.",
            Self::Protocol { .. } => {
                "Check the table of the server in the settings file; -vv shows what the server writes to stderr."
            }
            Self::Timeout { .. } => {
                "Raise `startup_timeout` in the table of the server, or check the server."
            }
        }
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
