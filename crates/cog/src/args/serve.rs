//! Arguments of `serve`, `mcp` and `worker`, which run modules for others.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

#[cfg(feature = "mcp")]
use clap::Subcommand;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::Error};
use cog_host::settings::{SERVER_SETTINGS, ServeSettings, ServerSetting, parse_duration};

#[cfg(feature = "mcp")]
use super::ListFormat;
use super::ModelArgs;

/// `cog serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each server option has an environment variable, COG_SERVE_NAME, and a key under [server] in \
~/.config/cog/config.toml. ./cog.toml can set limits. After Ctrl-C or SIGTERM, open streams may finish within \
--shutdown-timeout; with --drain-delay, new requests are served before that.

Examples:
  cog serve
  cog serve ./my-module
  cog serve cognitive/modules --builtin
  cog serve --port 0 --provider openai,anthropic
  cog serve --workbench --edit
  cog serve --state-dir ~/.local/state/cog --max-streams-per-client 4
  curl localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -d '{\"input\": {\"code\": \"eval(input())\"}}'
  curl -N localhost:8000/v1/modules/code-reviewer/execute -H 'Content-Type: application/json' \\
    -H 'Accept: text/event-stream' -d '{\"input\": {\"code\": \"eval(input())\"}}'")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) offered: OfferedArgs,
    /// Serve the workbench too: tests, logs and labels on the page, on this machine only or with --token-file
    #[arg(long)]
    pub(crate) workbench: bool,
    /// Let the workbench write files of modules
    #[arg(long, requires = "workbench")]
    pub(crate) edit: bool,
    #[command(flatten)]
    pub(crate) settings: ServerFlags,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// `cog open`.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts a server that only this browser can use: it listens on 127.0.0.1, and its address has a new token. Runs of the page \
are in the log of runs. Ctrl-C ends it. Without a browser, the address is only printed.

Examples:
  cog open
  cog open code-reviewer
  cog open ./my-module --edit
  cog open --no-browser --port 8000")]
pub(crate) struct OpenArgs {
    /// Module to show, or path of its directory [default: the one in the working directory]
    pub(crate) module: Option<String>,
    /// Let the page write the files of modules
    #[arg(long)]
    pub(crate) edit: bool,
    /// Print the address without starting a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Port; 0 = any free port
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true)]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The modules that callers may run.
#[derive(Debug, Args)]
pub(crate) struct OfferedArgs {
    /// Offer only these modules: directories of modules, or directories that contain modules [default: every module in `cog list`]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Also offer the built-in modules
    #[arg(long, requires = "paths")]
    pub(crate) builtin: bool,
}

/// `cog healthcheck`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 0 if GET /ready returns 200. It is for containers, whose images have no shell and no HTTP client.

Examples:
  cog healthcheck
  cog healthcheck 127.0.0.1:8001")]
pub(crate) struct HealthcheckArgs {
    /// Address of the server [default: the port of the settings of `cog serve`, on this machine]
    #[arg(value_name = "IP:PORT")]
    pub(crate) address: Option<SocketAddr>,
    /// Maximum time to wait for the response
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub(crate) timeout: Duration,
}

/// The flags of the server's settings, without dashes, with their values.
#[derive(Debug, Default)]
pub(crate) struct ServerFlags(Vec<(&'static str, String)>);

impl ServerFlags {
    /// Returns the value of a flag, if it was given.
    pub(crate) fn get(&self, flag: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| *name == flag).map(|(_, value)| value.clone())
    }
}

impl FromArgMatches for ServerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags = SERVER_SETTINGS.iter().map(|setting| setting.flag);
        let given = flags.filter_map(|flag| Some((flag, matches.get_one::<String>(flag)?.clone())));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ServerFlags {
    fn augment_args(command: Command) -> Command {
        let mut defaults = ServeSettings::default();
        command.args(SERVER_SETTINGS.iter().map(|setting| arg(setting, &mut defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn arg(setting: &ServerSetting, defaults: &mut ServeSettings) -> Arg {
    let default = setting.show(defaults).to_string();
    let help = match default.as_str() {
        "-" | "false" => setting.help.to_owned(),
        default => format!("{} [default: {default}]", setting.help),
    };
    let arg =
        Arg::new(setting.flag).long(setting.flag).value_name(setting.value).help(help).help_heading("Server");
    if setting.is_switch() {
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.allow_hyphen_values(true)
    }
}

/// `cog mcp`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
`cog serve` offers the same tools at /mcp. The tools that modules call are configured in the settings (see docs/tools.md).

Examples:
  cog mcp serve --provider openai
  cog mcp tools files
  cog mcp call files read_file '{\"path\": \"notes.txt\"}'
  cog mcp login search")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// The subcommands.
#[cfg(feature = "mcp")]
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve modules as tools over standard input and output, or over HTTP
    Serve(McpServeArgs),
    /// List the tools of the MCP servers in the settings
    Tools(McpToolsArgs),
    /// Call a tool of an MCP server in the settings
    Call(McpCallArgs),
    /// Sign in to an MCP server in the settings, in the browser
    Login(McpLoginArgs),
    /// Revoke the tokens of an MCP server, and remove them from this machine
    Logout(McpLogoutArgs),
}

/// `cog mcp login`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the address to open, and waits until the browser comes back. If the browser runs on another machine, paste the address \
at which it ends. Only you can read the stored tokens, and only this server receives them. They are renewed when they expire \
(see docs/mcp-servers.md).

Examples:
  cog mcp login search")]
pub(crate) struct McpLoginArgs {
    /// Server in the settings, with a `url`
    pub(crate) server: String,
}

/// `cog mcp logout`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Revokes the tokens at the server that issued them, if it offers that, and removes them from this machine in any case.

Examples:
  cog mcp logout search")]
pub(crate) struct McpLogoutArgs {
    /// Server in the settings
    pub(crate) server: String,
}

/// `cog mcp tools`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Starts the servers, and lists what modules can call: the name, what a call may do, whether a person confirms it, and the tokens \
that the definition costs in each request. As JSON, each tool has its schema in the form that each vendor receives.

Examples:
  cog mcp tools
  cog mcp tools files --format json")]
pub(crate) struct McpToolsArgs {
    /// Server [default: every server in the settings]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog mcp call`.
#[cfg(feature = "mcp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the result as a model receives it. Nothing asks for a confirmation: you call the tool yourself. The exit code is 1 if the \
result is an error.

Examples:
  cog mcp call files list_directory '{\"path\": \".\"}'")]
pub(crate) struct McpCallArgs {
    /// Server in the settings
    pub(crate) server: String,
    /// Tool, by the name that the server gives it
    pub(crate) tool: String,
    /// Arguments, a JSON object
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
}

/// `cog mcp serve`.
#[cfg(feature = "mcp")]
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
    #[command(flatten)]
    pub(crate) offered: OfferedArgs,
    /// Serve streamable HTTP at /mcp on this IP address and port
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// File of tokens for HTTP; each request must send one of them
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[cfg(feature = "mcp")]
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

/// `cog worker`.
#[cfg(feature = "nats")]
#[derive(Debug, Args)]
#[command(after_help = "\
A job is a message with the header Nats-Msg-Id and the body {\"module\": NAME, \"input\": {…}}, under the subject \
cog.jobs. Its result is stored in the bucket cog-results, with that id as the key. After Ctrl-C or SIGTERM, running jobs may \
finish within --shutdown-timeout; other workers take the rest.

A worker requires a provider. Invented results must be requested explicitly, with --provider offline.

The connection is configured by environment variables such as COG_NATS_CREDENTIALS, or by keys under [nats] in \
~/.config/cog/config.toml (see docs/nats.md).

Examples:
  cog worker --nats nats://localhost:4222
  cog worker ./my-module --nats nats://localhost:4222 --concurrency 32 --provider openai")]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) offered: OfferedArgs,
    /// URLs of the NATS servers, separated by commas [default: COG_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Maximum number of jobs to run at the same time
    #[arg(long, value_name = "NUMBER", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Maximum time for running jobs to finish after Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cog_host::settings::parse_duration)]
    pub(crate) shutdown_timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
