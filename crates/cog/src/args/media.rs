//! `media`: what runs do with media, one step at a time.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, value_parser};

use super::ListFormat;
use crate::settings::parse_duration;

/// `cog media`.
#[derive(Debug, Args)]
pub(crate) struct MediaArgs {
    #[command(subcommand)]
    pub(crate) command: MediaCommand,
}

/// The steps.
#[derive(Debug, Subcommand)]
pub(crate) enum MediaCommand {
    /// Tell whether a run would take them, were they named in an input
    Check(CheckArgs),
    /// Tell what media are, as a run would check them
    Probe(ProbeArgs),
    /// Take out of a picture what is not its pixels and their colours
    Strip(StripArgs),
    /// Take pictures out of a video, each with its time, and its sound
    Frames(FramesArgs),
    /// Print the text of a PDF, page by page
    Text(TextArgs),
}

/// `cog media check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Decides as for a source that stands in an input: files in the working directory and under `media.roots`, addresses of the \
public network and what `media.allow` names. What may be opened is opened, and checked as a medium.

Prints {\"source\", \"allowed\", \"code\", \"reason\"}, one line each; on a terminal the same as text. Exit code 1 where one is \
refused.

Examples:
  cog media check https://example.com/a.png http://localhost/a.png
  cog media check --no-fetch - < addresses.txt | jq -r 'select(.allowed) | .source'
  COG_MEDIA_ALLOW=media.internal:8443 cog media check https://media.internal:8443/a.png")]
pub(crate) struct CheckArgs {
    /// The media: http(s) addresses, files, or `-` for those that stdin names, one a line
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<String>,
    /// Decide by form alone: resolve no name, ask nobody, read no file
    #[arg(long)]
    pub(crate) no_fetch: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog media probe`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints {\"source\", \"kind\", \"media_type\", \"size_bytes\", \"sha256\", …} or {\"source\", \"error\"}, one line each; on a terminal a \
table. Exit code 1 where one is refused.

Examples:
  cog media probe photo.jpg talk.mp3
  curl -s https://example.com/a.png | cog media probe - --format json | jq .width")]
pub(crate) struct ProbeArgs {
    /// The media: files, http(s) addresses, or `-` for stdin
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog media strip`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exif, XMP, IPTC, comments, previews and whatever follows the end of the picture are left out; the profile of colours stays. \
Pixels stay as they are, unless the metadata turn the picture: then they are turned, and coded anew. Of a GIF the first \
frame is left.

Examples:
  cog media strip photo.jpg -o clean.jpg
  curl -s https://example.com/a.png | cog media strip - > a.png")]
pub(crate) struct StripArgs {
    /// The picture: a file, an http(s) address, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Write it into a file instead of to stdout; it may be the one that it was read from
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `cog media frames`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs ffmpeg, which is found on PATH or named by `media.ffmpeg`; `cog doctor` tells which. It gets the bytes alone, no address \
and no name, and limits on memory, time and what it may open.

Prints {\"at_ms\", \"file\"}, one line for each picture. Exit code 1 where there is none.

Examples:
  cog media frames talk.mp4 -o frames
  cog media frames talk.mp4 -o frames --count 8 --sound")]
pub(crate) struct FramesArgs {
    /// The video: a file, an http(s) address, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Write them into a folder, which is new or empty, as frame-0001.jpg and so on
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// One for each such time [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "count")]
    pub(crate) every: Option<Duration>,
    /// So many, the same time apart
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) count: Option<u32>,
    /// The most of them; where that is too few they are further apart [default: 60, or what --count says]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) most: Option<u32>,
    /// The longest side in pixels, to which they are scaled down
    #[arg(long, value_name = "PIXELS", default_value = "1024", value_parser = value_parser!(u32).range(16..=3840))]
    pub(crate) longest_side: u32,
    /// Write the sound as well, as sound.wav
    #[arg(long)]
    pub(crate) sound: bool,
}

/// `cog media text`.
#[derive(Debug, Args)]
#[command(after_help = "\
What a model reads that takes no PDF. Each page stands under a line `[page 1]`. Pages without text, as scans have them, are told on \
stderr. Exit code 1 where no page has any.

Examples:
  cog media text report.pdf
  cog media text report.pdf --format json | jq -r '.pages[] | select(.page == 3) | .text'")]
pub(crate) struct TextArgs {
    /// The PDF: a file, an http(s) address, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
