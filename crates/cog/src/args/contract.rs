//! Arguments of `diff`.

use clap::Args;

use super::ListFormat;

/// `cog diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
OLD and NEW are modules: names, directories, or directories at a git revision, written as git does: main:modules/sort, \
or HEAD~3:./sort from the working directory. Exit code 0; with --check, 1 if a change is breaking.

Examples:
  cog diff main:./my-module ./my-module
  cog diff main:my-module my-module --check
  cog diff code-reviewer ./my-module --format json | jq -r .version_step")]
pub(crate) struct DiffArgs {
    /// The old module
    pub(crate) old: String,
    /// The new module
    pub(crate) new: String,
    /// Exit with 1 if a change is breaking
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
