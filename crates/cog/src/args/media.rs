//! `media`: what runs do with media, one step at a time.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListFormat;

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
