//! `media`: what runs do with media, one step at a time.

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
    /// Tell what media are, as a run would check them
    Probe(ProbeArgs),
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
