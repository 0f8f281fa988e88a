//! Arguments of `cache`, which shows and clears the cache of answers.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListFormat;

/// `cog cache`.
#[derive(Debug, Args)]
#[command(after_help = "\
`cog run --cache DIR` stores answers, and returns the stored answer for an identical request.

Examples:
  cog cache stats answers
  cog cache stats answers --format json | jq .bytes
  cog cache clear answers")]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show the number and the size of the stored answers
    Stats(CacheStatsArgs),
    /// Remove every stored answer
    Clear(CacheClearArgs),
}

/// `cog cache stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog cache stats answers
  cog cache stats answers --format json")]
pub(crate) struct CacheStatsArgs {
    /// Directory of the cache [default: `cache.directory` in the settings]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog cache clear`.
#[derive(Debug, Args)]
#[command(after_help = "\
Other files in the directory are kept.

Examples:
  cog cache clear answers")]
pub(crate) struct CacheClearArgs {
    /// Directory of the cache [default: `cache.directory` in the settings]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
