//! Arguments of `worker`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use cog_host::settings::parse_duration;

use super::ModelArgs;

/// `cog worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
A job is a message with the header Nats-Msg-Id and the text {\"module\": NAME, \"input\": {…}}, below the subject \
cog.jobs. Its result is stored under that id in the bucket cog-results. After Ctrl-C or SIGTERM, running jobs may \
finish within --shutdown-timeout; the rest goes to other workers.

A worker requires a provider. With --provider offline, which must be given, its results are invented.

The connection has variables, COG_NATS_CREDENTIALS and so on, and keys under [nats] in ~/.config/cog/config.toml: \
docs/nats.md.

Examples:
  cog worker --nats nats://localhost:4222
  cog worker ./my-module --nats nats://localhost:4222 --concurrency 32 --provider openai")]
pub(crate) struct WorkerArgs {
    /// Directories of further modules, or directories that contain modules
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// URLs of the NATS servers, separated by commas [default: COG_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Maximum number of jobs that run together
    #[arg(long, value_name = "N", default_value = "16", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Time that running jobs have to finish after Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) shutdown_timeout: Duration,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
