//! Arguments of `mcp`, which serves modules as tools of MCP.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};

use super::ModelArgs;

/// `cog mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
`cog serve` offers the same tools at /mcp. The tools that modules call are configured in the settings (see docs/tools.md).

Examples:
  cog mcp serve --provider openai")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve modules as tools over standard input and output, or over HTTP
    Serve(McpServeArgs),
}

/// `cog mcp serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each module is a tool: its input schema describes the arguments, and its envelope is returned as structured content. A \
client starts the program itself, with a configuration such as

  {\"mcpServers\": {\"cog\": {\"command\": \"cog\", \"args\": [\"mcp\", \"serve\"]}}}

With --http, every setting of `cog serve` applies, as an environment variable COG_SERVE_NAME or a key under [server] in \
~/.config/cog/config.toml (see docs/mcp.md).

Examples:
  cog mcp serve
  cog mcp serve ./my-module --provider openai
  cog mcp serve --http 127.0.0.1:8001")]
pub(crate) struct McpServeArgs {
    /// Directories of additional modules, or directories that contain modules
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Serve streamable HTTP at /mcp on this IP address and port
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// File of tokens for HTTP; each request must send one of them
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

impl McpServeArgs {
    /// Returns the value of a flag of `cog serve`, if it was given.
    pub(crate) fn server_flag(&self, flag: &str) -> Option<String> {
        match flag {
            "listen" => self.http.map(|address| address.ip().to_string()),
            "port" => self.http.map(|address| address.port().to_string()),
            "token-file" => self.token_file.clone(),
            _ => None,
        }
    }
}
