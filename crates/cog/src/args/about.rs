//! Arguments of the commands about the program itself: `doctor`, `config`, `trust`, `schema`, `errors`, `conformance`,
//! `docs`, `completions`, `man`.

use std::{ffi::OsStr, path::PathBuf};

use clap::{
    Arg, Args, Command, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::Error,
    value_parser,
};
use cog_provider::vendors::VENDORS;
use cog_spec::{Code, WarningCode};

use super::OutputArgs;

/// The output format of a list or a report.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ListFormat {
    /// Output format
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

/// Text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text.
    #[value(alias = "text")]
    Human,
    /// JSON, on one line in a pipe.
    Json,
}

impl ListFormat {
    /// Whether `--format json` was given.
    pub(crate) fn is_json(self) -> bool {
        self.format == Some(Format::Json)
    }

    /// Whether `--format human` was given.
    pub(crate) fn is_human(self) -> bool {
        self.format == Some(Format::Human)
    }
}

/// `cog config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Precedence: flags, environment variables, ./cog.toml, ~/.config/cog/config.toml, defaults.

Environment variables are named COG_ plus the setting: COG_TIMEOUT, COG_MEDIA_FETCH. For server.port it is \
COG_SERVE_PORT. Exceptions are LLM_PROVIDER, LLM_MODEL and COGNITIVE_MODULES_PATH. HTTPS_PROXY, NO_PROXY, \
SSL_CERT_FILE and SSL_CERT_DIR apply to all calls to providers.

./cog.toml cannot set keys, URLs, media rules, module directories or the run log. A settings file:

  provider = \"ollama\"
  model = \"qwen3\"
  timeout = \"2m\"                       # also: first_token_timeout, idle_timeout
  retries = 2                          # also: strict, breaker_failures, breaker_reset_timeout
  effort = \"low\"                       # also: verbosity, service_tier
  [providers.gemini]                   # in ~/.config/cog/config.toml also: key, base_url, prices
  model = \"gemini-3.8-flash\"
  [media]                              # in ~/.config/cog/config.toml only
  allow = [\"10.1.0.0/16\", \"media.internal:8443\"]   # in addition to the public network
  roots = [\"/srv/media\"]               # inputs may name files in these; also: fetch = false
  [logs]                               # in ~/.config/cog/config.toml only
  contents = true                      # store the inputs and answers of runs; also: enabled

Examples:
  cog config
  cog config --format json | jq -r '.settings[] | select(.source != \"default\") | .name'")]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog capabilities`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog capabilities
  cog capabilities | jq .capabilities.multimodal")]
pub(crate) struct CapabilitiesArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `cog doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Requests the model list of each configured provider, which is free of charge. Exit code 1 if one does not respond. \
Also shows the programs that read media files, and what a support ticket needs: version, settings files, the source of each value, \
proxy, certificates, directories, locale and terminal. Keys are named, never shown.

Examples:
  cog doctor
  cog doctor --provider ollama
  cog doctor --all --format json")]
pub(crate) struct DoctorArgs {
    /// Check only this provider
    #[arg(long, short, value_name = "NAME", value_parser = vendors(), hide_possible_values = true)]
    pub(crate) provider: Option<String>,
    /// Also list providers that are not configured, without calling them
    #[arg(long, conflicts_with = "provider")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

fn vendors() -> PossibleValuesParser {
    PossibleValuesParser::new(VENDORS.iter().map(|vendor| vendor.name))
}

/// `cog docs`.
#[derive(Debug, Args)]
#[command(after_help = "\
The pages are part of each release, and need no network. Opens $BROWSER, otherwise the browser of the desktop; without one, prints \
the path of the page. Looks for the pages in `docs` next to the program, then in `share/cog/cog-VERSION-docs` of its parent directory \
and of ~/.local.

Examples:
  cog docs
  cog docs testing
  cog docs --path cli/run")]
pub(crate) struct DocsArgs {
    /// Page to open: its name, or the name of a command [default: the start page]
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// Print the path of the page instead of opening it
    #[arg(long)]
    pub(crate) path: bool,
}

/// `cog schema`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  cog schema envelope
  cog schema manifest -o module.schema.json"
)]
pub(crate) struct SchemaArgs {
    /// Schema to print
    #[arg(value_name = "NAME")]
    pub(crate) name: SchemaName,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A document type of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// `module.yaml`
    Manifest,
    /// `NAME.expected.json` of a golden test
    Expected,
    /// `cog.toml` and `config.toml`
    Settings,
    /// The result of a run
    Envelope,
    /// One chunk of a stream
    Chunk,
    /// The capabilities of a runtime
    Capabilities,
    /// `forms.json` of a module
    Forms,
    /// A Harmony message
    Message,
    /// A Harmony handoff packet
    Handoff,
    /// The HTTP API (OpenAPI 3.1)
    Openapi,
}

/// `cog errors`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog errors
  cog errors E2001
  cog errors SCHEMA_VALIDATION_FAILED
  cog errors --format json")]
pub(crate) struct ErrorsArgs {
    /// Error code, name, or legacy text code [default: all codes]
    #[arg(value_parser = CodeParser, hide_possible_values = true)]
    pub(crate) code: Option<Code>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// Parses an error code in any of its forms; completion offers `E1000` and so on.
#[derive(Clone)]
struct CodeParser;

impl TypedValueParser for CodeParser {
    type Value = Code;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Code, Error> {
        TypedValueParser::parse_ref(&code, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Code::ALL.iter().map(|code| PossibleValue::new(code.as_str()).help(code.name()))))
    }
}

fn code(text: &str) -> Result<Code, String> {
    let text = text.to_ascii_uppercase();
    let found = text.parse().ok().or_else(|| Code::from_text(&text));
    found.ok_or_else(|| match text.parse::<WarningCode>() {
        Ok(_) => "the code of a warning; docs/spec/envelope.md lists the meaning of each".to_owned(),
        Err(_) => "unknown code; `cog errors` lists all codes".to_owned(),
    })
}

/// `cog completions`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Completes commands, flags, providers and the names of modules. For zsh, add `fpath+=~/.zfunc` to ~/.zshrc before \
`compinit`.

Examples:
  cog completions bash >> ~/.bash_completion
  mkdir -p ~/.zfunc && cog completions zsh > ~/.zfunc/_cog
  mkdir -p ~/.config/fish/completions && cog completions fish > ~/.config/fish/completions/cog.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to print the script for
    pub(crate) shell: clap_complete::Shell,
}

/// `cog man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog man | man -l -
  cog man run > cog-run.1
  cog man media probe | man -l -")]
pub(crate) struct ManArgs {
    /// Command, with its subcommand if it has one [default: the overview]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `cog conformance`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs the built-in cases of the four levels of the specification over HTTP, with a scripted model. Prints the level \
reached and what is missing. Without --url, checks this program.

To check another runtime, write the modules of the cases with --write-modules, and start the runtime with them. Its \
provider must be OpenAI Chat Completions at http://127.0.0.1:PORT/v1, where PORT is the value of --mock-port.

Prints {\"level\", \"required_level\", \"levels\": [{\"level\", \"passed\", \"cases\": [{\"name\", \"codes\", \"passed\", \
\"differences\"}]}]}; on a terminal, text. Exit code 0 if the required level is reached, otherwise 1.

Examples:
  cog conformance --level 2
  cog conformance --level 2 --format json | jq .level
  cog conformance --write-modules modules")]
pub(crate) struct ConformanceArgs {
    /// Runtime to check: the URL before /v1 [default: this program]
    #[arg(long, value_name = "URL", conflicts_with = "write_modules")]
    pub(crate) url: Option<String>,
    /// Level that must be reached [default: the level that the capabilities claim]
    #[arg(long, value_name = "LEVEL", value_parser = value_parser!(u8).range(1..=4))]
    pub(crate) level: Option<u8>,
    /// Port of the model that the runtime at --url calls
    #[arg(long, value_name = "PORT", default_value_t = 9797, value_parser = value_parser!(u16).range(1..))]
    pub(crate) mock_port: u16,
    /// Write the modules of the cases to this directory, and show how to check another runtime
    #[arg(long, value_name = "DIR")]
    pub(crate) write_modules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
A module that is found by name in the working directory calls tools only if that directory is trusted. Trust covers the \
modules in the directory, in its cognitive/modules and in its .cognitive/modules; not the directories further below. It \
stays when files change, except for a module whose manifest then allows more tools or effects than before.

Examples:
  cog trust
  cog trust cognitive/modules/my-module
  cog trust --list")]
pub(crate) struct TrustArgs {
    /// Directory to trust [default: the working directory]
    #[arg(value_name = "PATH", conflicts_with = "list")]
    pub(crate) path: Option<PathBuf>,
    /// List the trusted directories
    #[arg(long)]
    pub(crate) list: bool,
    /// Stop trusting the directory
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
