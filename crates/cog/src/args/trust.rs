//! Arguments of `trust`, which lets the modules of a directory call tools.

use std::path::PathBuf;

use clap::Args;

use super::ListFormat;

/// `cog trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
A module that is found by name in the working directory calls tools only if that directory is trusted. Trust covers the
modules in the directory, in its cognitive/modules and in its .cognitive/modules; not the directories further below. It
stays when files change.

Examples:
  cog trust
  cog trust cognitive/modules/my-module
  cog trust --list")]
pub(crate) struct TrustArgs {
    /// Directory to trust [default: the working directory]
    #[arg(value_name = "PATH", conflicts_with = "list")]
    pub(crate) path: Option<PathBuf>,
    /// List the trusted directories
    #[arg(long)]
    pub(crate) list: bool,
    /// Stop trusting the directory
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
