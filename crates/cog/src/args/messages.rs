//! Arguments of `messages`.

use std::{path::PathBuf, time::Duration};

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use cog_harmony::{Format, PartSupport};
use cog_host::settings::parse_duration;
use cog_provider::{
    provider_names,
    vendors::{VENDORS, Vendor},
};
use cog_spec::Modality;

use super::ListFormat;

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
    let input = vendor.input_of(model);
    PartSupport {
        model: format!("{}/{model}", vendor.name),
        images: input.contains(&Modality::Image),
        image_urls: vendor.formats.by_url,
        audio: input.contains(&Modality::Audio),
        documents: input.contains(&Modality::Document),
    }
}

/// `cog messages count`.
#[derive(Debug, Args)]
#[command(after_help = "\
Text is counted with the model's tokenizer, and images by the vendor's rule. If no tokenizer is published, as for Claude \
and Gemini, the highest count of all built-in tokenizers applies, and \"exact\" is false.

Prints {\"model\", \"tokenizer\", \"exact\", \"tokens\", \"images\", \"image_tokens\", \"messages\": [{\"index\", \"role\", \
\"tokens\", \"images\", \"image_tokens\", \"estimated\"}]}; on a terminal, a table.

Examples:
  cog messages count history.json --model gpt-4o
  cog messages count history.json --model claude-sonnet-5-5 | jq .tokens")]
pub(crate) struct CountArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Model to count tokens for
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog messages trim`.
#[derive(Debug, Args)]
#[command(after_help = "\
First replaces the oldest images with text, then audio and files. Then removes the oldest messages: tool calls together \
with their results, and replies together with their questions. Keeps system messages, the last user message and \
summaries. A summary is a message with \"metadata\": {\"summary\": true}, or with the name `summary`.

Prints the history to stdout, and what was removed to stderr. Exit code 1 with E1005 if the messages to keep exceed the \
limit.

Examples:
  cog messages trim history.json --max-tokens 100000 --model gpt-4o -o trimmed.json
  cog messages trim history.json --max-tokens 8000 --report removed.json > trimmed.json")]
pub(crate) struct TrimArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Maximum tokens of all messages, including the tokens around them
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_tokens: u64,
    /// Model to count tokens for
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write {"tokenizer", "exact", "tokens_before", "tokens", "removed"} to this file, instead of the text on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// `cog messages archive`.
#[derive(Debug, Args)]
#[command(after_help = "\
Signed URLs of images often expire after 15 to 60 minutes. This command fetches each image behind an http(s) URL, under the \
rules for the inputs of a run. It writes the image to DIR, named by its SHA-256. The history is written to DIR/messages.json, \
with file names instead of URLs. `cog messages expand` reads the files.

A URL that cannot be fetched stays in the history and is reported with its path. Prints one line of {\"path\", \"file\"} or \
{\"path\", \"url\", \"code\", \"error\"} per image. Exit code 1 if an image was not fetched.

Examples:
  cog messages archive history.json archive
  cog messages archive history.json archive | jq -r 'select(.error) | .path'")]
pub(crate) struct ArchiveArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Directory for messages.json and the images
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// `cog messages expand`.
#[derive(Debug, Args)]
#[command(after_help = "\
A video in a message becomes its frames, as image parts with \"video_metadata\", and its audio, as \"input_audio\". The video can \
be a part of type `file`, `input_audio` or `image_url`. An audio file becomes \"input_audio\". The file \
names of an archive become `data:` URLs; only files in the directory of the history are read. Videos require ffmpeg.

Prints the history to stdout, and each change to stderr. A part that cannot be expanded stays unchanged and is reported \
with its path. The exit code is then 1.

Examples:
  cog messages expand archive/messages.json -o history.json
  cog messages expand history.json --every 5s | cog verify - --kind messages")]
pub(crate) struct ExpandArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Time between the frames of a video [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) every: Option<Duration>,
    /// Maximum number of frames of a video; the interval grows to fit [default: 60]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) max_frames: Option<u32>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
