//! Arguments of `trace`, which shows the messages of a run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `cog trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show each message with its author, and a bar for its time
    Show(TraceShowArgs),
}

/// The format of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Text, as wide as the terminal.
    Text,
    /// One JSON object.
    Json,
    /// One HTML page.
    Html,
}

/// `cog trace show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows each message with its author, model, time, tokens and cost, and with its text, tool calls, results and media. The \
bar of a message is its time in the run. Unknown tokens and costs are shown as `unknown`. Any message history can be \
shown.

JSON is {\"messages\": [{\"index\", \"role\", \"name\", \"model\", \"start_ms\", \"duration_ms\", \"usage\", \"content\", …}], \
\"totals\"}. HTML is one page without scripts or external files.

Examples:
  cog run code-reviewer --args \"eval(input())\" --trace trace.json
  cog trace show trace.json
  cog trace show trace.json --format html -o trace.html
  cog trace show trace.json --format json | jq .totals")]
pub(crate) struct TraceShowArgs {
    /// Trace of a run, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TraceFormat,
    /// Write to a file instead of stdout; the directory must exist
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
