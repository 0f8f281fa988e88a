//! Arguments of `media`, which runs one step of media processing.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, value_parser};
use cog_host::settings::parse_duration;

use super::ListFormat;

/// `cog media`.
#[derive(Debug, Args)]
pub(crate) struct MediaArgs {
    #[command(subcommand)]
    pub(crate) command: MediaCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum MediaCommand {
    /// Check whether a run would accept these files and URLs
    Check(CheckArgs),
    /// Show type, size and dimensions of media files
    Probe(ProbeArgs),
    /// Remove metadata from an image
    Strip(StripArgs),
    /// Extract frames, and optionally the audio, from a video
    Frames(FramesArgs),
    /// Print the text of a PDF, page by page
    Text(TextArgs),
}

/// `cog media check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Applies the rules for the inputs of a run. They allow files in the working directory and under `media.roots`, URLs \
on the public network, and hosts in `media.allow`. Allowed sources are then opened and validated.

Prints one line of {\"source\", \"allowed\", \"code\", \"reason\"} per source; on a terminal, text. Exit code 1 if any \
source is refused.

Examples:
  cog media check https://example.com/a.png http://localhost/a.png
  cog media check --no-fetch - < urls.txt | jq -r 'select(.allowed) | .source'
  COG_MEDIA_ALLOW=media.internal:8443 cog media check https://media.internal:8443/a.png")]
pub(crate) struct CheckArgs {
    /// Files or http(s) URLs, or `-` to read them from stdin, one per line
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<String>,
    /// Check the form only: no DNS lookups, no requests, no file access
    #[arg(long)]
    pub(crate) no_fetch: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog media probe`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints one line of {\"source\", \"kind\", \"media_type\", \"size_bytes\", \"sha256\", …} or {\"source\", \"error\"} per \
source; on a terminal, a table. Exit code 1 if any source is refused.

Examples:
  cog media probe photo.jpg talk.mp3
  curl -s https://example.com/a.png | cog media probe - --format json | jq .width")]
pub(crate) struct ProbeArgs {
    /// Files or http(s) URLs, or `-` for stdin
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog media strip`.
#[derive(Debug, Args)]
#[command(after_help = "\
Removes Exif, XMP, IPTC, comments, previews and trailing data; keeps the colour profile. The pixels stay unchanged, \
unless Exif rotates the image: then it is rotated and encoded again. An animated GIF is reduced to its first frame.

Examples:
  cog media strip photo.jpg -o clean.jpg
  curl -s https://example.com/a.png | cog media strip - > a.png")]
pub(crate) struct StripArgs {
    /// Image file or http(s) URL, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Write to this file instead of stdout; its extension selects the format
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `cog media frames`.
#[derive(Debug, Args)]
#[command(after_help = "\
Requires ffmpeg, from PATH or `media.ffmpeg`; `cog doctor` shows which. ffmpeg runs with limits on memory, time and \
file access, and receives only the bytes of the video.

Prints one line of {\"at_ms\", \"file\"} per frame. Exit code 1 if there are no frames.

Examples:
  cog media frames talk.mp4 -o frames
  cog media frames talk.mp4 -o frames --count 8 --audio")]
pub(crate) struct FramesArgs {
    /// Video file or http(s) URL, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Directory for frame-0001.jpg and so on; must be new or empty
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Time between frames [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "count")]
    pub(crate) every: Option<Duration>,
    /// Number of evenly spaced frames
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) count: Option<u32>,
    /// Maximum number of frames; the interval grows to fit [default: 60, or the value of --count]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..=500))]
    pub(crate) max_frames: Option<u32>,
    /// Scale frames down to at most this width and height
    #[arg(long, value_name = "PIXELS", default_value = "1024", value_parser = value_parser!(u32).range(16..=3840))]
    pub(crate) max_dimension: u32,
    /// Also extract the audio, as audio.wav
    #[arg(long)]
    pub(crate) audio: bool,
}

/// `cog media text`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the text that models without PDF support receive. Each page begins with a line `[page 1]`. Pages without text, such \
as scans, are listed on stderr. Exit code 1 if no page has text.

Examples:
  cog media text report.pdf
  cog media text report.pdf --format json | jq -r '.pages[] | select(.page == 3) | .text'")]
pub(crate) struct TextArgs {
    /// PDF file or http(s) URL, or `-` for stdin
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
