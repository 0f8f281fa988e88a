//! Errors of servers.

use std::time::Duration;

use cog_spec::Code;
use thiserror::Error;

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

/// The maximum length of a text of a server in a message.
const MAX_TEXT: usize = 2000;

/// Returns a text in one line, truncated.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
