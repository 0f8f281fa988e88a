//! Arguments of `worker`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use cog_host::settings::parse_duration;

use super::ModelArgs;

/// `cog worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
A job is a message with the header Nats-Msg-Id and the body {\"module\": NAME, \"input\": {…}}, under the subject \
cog.jobs. Its result is stored in the bucket cog-results, with that id as the key. After Ctrl-C or SIGTERM, running jobs may \
finish within --shutdown-timeout; other workers take the rest.

A worker requires a provider. Invented results must be requested explicitly, with --provider offline.

The connection is configured by environment variables such as COG_NATS_CREDENTIALS, or by keys under [nats] in \
~/.config/cog/config.toml (see docs/nats.md).

Examples:
  cog worker --nats nats://localhost:4222
  cog worker ./my-module --nats nats://localhost:4222 --concurrency 32 --provider openai")]
pub(crate) struct WorkerArgs {
    /// Directories of additional modules, or directories that contain modules
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// URLs of the NATS servers, separated by commas [default: COG_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Maximum number of jobs to run at the same time
    #[arg(long, value_name = "N", default_value = "16", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Maximum time for running jobs to finish after Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) shutdown_timeout: Duration,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
