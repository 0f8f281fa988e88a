//! Arguments of `jobs`, about the jobs of a NATS queue that could not be run.

use clap::{Args, Subcommand, value_parser};

use super::ListFormat;

/// `cog jobs`.
#[derive(Debug, Args)]
#[command(after_help = "\
A job that no worker can run is moved to the stream cog-failed, with its error. Its number there is the NUMBER of these commands.

Examples:
  cog jobs list --nats nats://localhost:4222
  cog jobs retry 17 18
  cog jobs purge --all")]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub(crate) command: QueueCommand,
    /// URLs of the NATS servers, separated by commas [default: COG_NATS_URL]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) nats: Option<String>,
}

/// What is done with the jobs that could not be run.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the jobs that could not be run, oldest first
    List(FailedListArgs),
    /// Put failed jobs into the queue again, under new ids
    Retry(FailedArgs),
    /// Remove failed jobs
    Purge(FailedArgs),
}

/// `cog jobs list`.
#[derive(Debug, Args)]
pub(crate) struct FailedListArgs {
    /// Maximum number of jobs to list
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// Which failed jobs.
#[derive(Debug, Args)]
pub(crate) struct FailedArgs {
    /// Numbers of the jobs, as `cog jobs list` prints them
    #[arg(value_name = "NUMBER", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) numbers: Vec<u64>,
    /// All failed jobs
    #[arg(long)]
    pub(crate) all: bool,
}
