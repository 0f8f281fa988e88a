//! Arguments of `messages count`, `messages trim`, `messages archive` and `messages expand`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use cog_host::settings::parse_duration;

use super::ListFormat;

/// `cog messages count`.
#[derive(Debug, Args)]
#[command(after_help = "\
Texts are counted with the tokenizer of the model, images by the rule of its vendor. Without a published tokenizer, as \
for Claude and Gemini, all built-in tokenizers count and the maximum applies. \"exact\" is then false.

Prints {\"model\", \"tokenizer\", \"exact\", \"tokens\", \"images\", \"image_tokens\", \"messages\": [{\"index\", \"role\", \
\"tokens\", \"images\", \"image_tokens\", \"estimated\"}]}; on a terminal, a table.

Examples:
  cog messages count history.json --model gpt-4o
  cog messages count history.json --model claude-sonnet-5-5 | jq .tokens")]
pub(crate) struct CountArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Model whose tokens are counted
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog messages trim`.
#[derive(Debug, Args)]
#[command(after_help = "\
The oldest images are replaced by a text first, then audio and files. Then the oldest messages are removed: tool calls \
together with their results, replies together with their question. System messages, the last user message and summaries \
stay. A summary is a message with \"metadata\": {\"summary\": true}, or with the name `summary`.

Prints the history on stdout, and what was removed on stderr. Exit code 1 with E1005 if what must stay exceeds the limit.

Examples:
  cog messages trim history.json --max-tokens 100000 --model gpt-4o -o trimmed.json
  cog messages trim history.json --max-tokens 8000 --report removed.json > trimmed.json")]
pub(crate) struct TrimArgs {
    /// History, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Maximum tokens of all messages, with the tokens that frame them
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_tokens: u64,
    /// Model whose tokens are counted
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write {"tokenizer", "exact", "tokens_before", "tokens", "removed"} to this file, in place of the text on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// `cog messages archive`.
#[derive(Debug, Args)]
#[command(after_help = "\
Signed URLs of images often expire after 15 to 60 minutes. This command fetches each image behind an http(s) URL, under the \
rules for the inputs of a run. It writes the image to DIR, named by its SHA-256. The history is written to DIR/messages.json, \
with the file names in place of the URLs. `cog messages expand` reads them.

A URL that cannot be fetched stays in the history, and is reported with its path. Prints one line of {\"path\", \"file\"} or \
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
A video in a message becomes its frames, as image parts with \"video_metadata\", and its audio, as \"input_audio\". It can be a \
part of the type `file` or `input_audio`, or an image_url that is a video. An audio file becomes \"input_audio\". The file \
names of an archive become `data:` URLs; only files beside the history are read. Videos require ffmpeg.

Prints the history on stdout, and each change on stderr. A part that cannot be expanded stays, is reported with its path, and \
the exit code is 1.

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
    /// Maximum frames of a video; the interval grows to fit [default: 60]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) max_frames: Option<u32>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
