//! Commands about the program itself: `doctor`, `config`, `schema`, `errors`, `completions`, `man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use cog_provider::vendors::VENDORS;
use cog_spec::Code;

use super::OutputArgs;

/// How a list or a report is written.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ListFormat {
    /// How it is written
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

/// Text, or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people.
    Human,
    /// JSON, on one line in a pipe.
    Json,
}

impl ListFormat {
    /// Whether JSON was asked for.
    pub(crate) fn is_json(self) -> bool {
        self.format == Some(Format::Json)
    }

    /// Whether text was asked for.
    pub(crate) fn is_human(self) -> bool {
        self.format == Some(Format::Human)
    }
}

/// `cog config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Strongest first: a flag, the environment, ./cog.toml, ~/.config/cog/config.toml, the default. A file in the working \
directory may not set keys, addresses, media or folders of modules. A variable is COG_ and the setting's name, as in \
COG_FIRST_TOKEN, COG_MEDIA_FETCH and, for server.port, COG_SERVE_PORT; but LLM_PROVIDER, LLM_MODEL and \
COGNITIVE_MODULES_PATH. HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR count wherever a provider is asked. A \
settings file:

  provider = \"ollama\"
  model = \"qwen3\"
  timeout = \"2m\"                       # also: first_token, stall, breaker_pause
  retries = 2                          # also: breaker_failures, strict
  [providers.gemini]                   # in ~/.config/cog/config.toml also: key, base_url
  model = \"gemini-3.8-flash\"
  [media]                              # in ~/.config/cog/config.toml only
  allow = [\"10.1.0.0/16\", \"media.internal:8443\"]   # asked beside the public network
  roots = [\"/srv/media\"]             # whose files inputs may name; also: fetch = false

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
Asks each provider that is set up for its models; that costs nothing. Exit code 1 where one does not answer. \
Tells besides which ffmpeg takes frames and sound tracks out of media.

Examples:
  cog doctor
  cog doctor --provider ollama
  cog doctor --all --format json")]
pub(crate) struct DoctorArgs {
    /// Only this provider
    #[arg(long, short, value_name = "NAME", value_parser = vendors(), hide_possible_values = true)]
    pub(crate) provider: Option<String>,
    /// Also the providers that are not set up, without asking them
    #[arg(long, conflicts_with = "provider")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

fn vendors() -> PossibleValuesParser {
    PossibleValuesParser::new(VENDORS.iter().map(|vendor| vendor.name))
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
    /// Which schema
    #[arg(value_name = "NAME")]
    pub(crate) name: SchemaName,
    /// Write it into a file instead of to stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A document that the specification describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// `module.yaml`
    Manifest,
    /// The answer of a run
    Envelope,
    /// One chunk of a stream
    Chunk,
    /// What a runtime can do
    Capabilities,
    /// A Harmony message
    Message,
    /// A Harmony handoff packet
    Handoff,
    /// The HTTP interface (OpenAPI 3.1)
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
    /// The code, its name, or an older text code; none for the whole table
    #[arg(value_parser = code)]
    pub(crate) code: Option<Code>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

fn code(text: &str) -> Result<Code, String> {
    let text = text.to_ascii_uppercase();
    let found = text.parse().ok().or_else(|| Code::from_text(&text));
    found.ok_or_else(|| "no such code; `cog errors` lists them all".to_owned())
}

/// `cog completions`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
zsh looks into ~/.zfunc where ~/.zshrc has `fpath+=~/.zfunc` before `compinit`.

Examples:
  cog completions bash >> ~/.bash_completion
  mkdir -p ~/.zfunc && cog completions zsh > ~/.zfunc/_cog
  mkdir -p ~/.config/fish/completions && cog completions fish > ~/.config/fish/completions/cog.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
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
    /// The command, with its step where it has some; none for the overview
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
