//! A server that the operator configured.

use std::{path::PathBuf, time::Duration};

use cog_spec::Secret;

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
