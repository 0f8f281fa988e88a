//! `run`, `render`, `test`.

use std::path::PathBuf;

use clap::Args;

/// Where the answer goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print JSON with line breaks, also on a terminal
    #[arg(long)]
    pub(crate) pretty: bool,
    /// Write the JSON into a file instead of to stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
