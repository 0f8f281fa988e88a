//! Arguments of `messages`, which changes histories of messages.

use std::path::PathBuf;

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use cog_harmony::{Format, PartSupport};
use cog_provider::{
    provider_names,
    vendors::{VENDORS, Vendor},
};
use cog_spec::Modality;

use super::history::{ArchiveArgs, CountArgs, ExpandArgs, TrimArgs};

/// `cog messages`.
#[derive(Debug, Args)]
#[command(after_help = "\
A history is a JSON array of messages, an object with \"messages\", or one message per line. `cog verify` checks one.")]
pub(crate) struct MessagesArgs {
    #[command(subcommand)]
    pub(crate) command: MessagesCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum MessagesCommand {
    /// Fix what can be fixed without inventing anything
    Fix(FixArgs),
    /// Count the tokens of each message
    Count(CountArgs),
    /// Remove the oldest images and messages until a history fits --max-tokens
    Trim(TrimArgs),
    /// Store a history with its images, before their URLs expire
    Archive(ArchiveArgs),
    /// Turn videos into frames and audio, and read the files of an archive
    Expand(ExpandArgs),
    /// Convert to and from the formats of vendors
    Convert(ConvertArgs),
}

/// `cog messages fix`.
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments that are an object become a string. Tool results move after their calls, in the order of the calls. \
A result without a call moves to \"orphans\", next to \"messages\". Nothing else changes.

Prints the history to stdout, and each change to stderr. Exit code 1 if errors remain, which are also printed.

Examples:
  cog messages fix history.json -o fixed.json
  cog messages fix history.json --report report.json | cog verify - --kind messages")]
pub(crate) struct FixArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write {"changes", "problems"} to this file, instead of the text on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// `cog messages convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the history to stdout. Content that the format cannot represent is listed on stderr, with its path in the \
Harmony form. The Anthropic and Gemini formats are objects, because they keep the system prompt apart from the messages.

Examples:
  cog messages convert history.json --to anthropic
  cog messages convert request.json --from gemini --to openai-responses --strict -o input.json
  cog messages convert history.json --to openai-chat --report losses.json")]
pub(crate) struct ConvertArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) to: Format,
    /// Format to read [default: detected]
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) from: Option<Format>,
    /// Fail if anything is lost, and write nothing
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write {"losses": [{"path", "what", "why"}]} to this file, instead of the text on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::NAMES).try_map(|name| Format::from_name(&name).ok_or("unknown format"))
}

/// Parses `provider/model`, and looks up which parts the model accepts.
pub(super) fn parse_model(text: &str) -> Result<PartSupport, String> {
    let (provider, model) =
        text.split_once('/').ok_or("expected PROVIDER/MODEL, such as openai/gpt-6-luna")?;
    let vendor = VENDORS.iter().find(|vendor| vendor.name == provider);
    let vendor = vendor.ok_or_else(|| {
        format!("unknown provider `{provider}`; known providers: {}", provider_names().join(", "))
    })?;
    Ok(support(vendor, model))
}

fn support(vendor: &Vendor, model: &str) -> PartSupport {
    let accepts = |modality| vendor.input_of(model).contains(&modality);
    PartSupport {
        model: format!("{}/{model}", vendor.name),
        images: accepts(Modality::Image),
        image_urls: vendor.formats.by_url,
        audio: accepts(Modality::Audio),
        documents: accepts(Modality::Document),
    }
}
