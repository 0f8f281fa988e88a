//! Arguments of `diff` and `insights`.

use std::path::PathBuf;

use clap::Args;
use cog_contract::insights::MIN_CASES;

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

/// `cog insights`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts the runs of the log, or of files: the results of `cog batch`, and the reports of `cog test --format json`. Answers are \
in the log only if `logs.contents` is set. Percentages are intervals with a confidence of 95 %.

Examples:
  cog insights my-module
  cog insights my-module --from answer.json
  cog insights my-module --format json | jq -c '.proposals[]'")]
pub(crate) struct InsightsArgs {
    /// Only runs of this module [default: all runs of the log]
    #[arg(value_name = "MODULE")]
    pub(crate) module: Option<String>,
    /// Count the runs in this file, not those of the log (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,
    /// Minimum number of runs that must show something before it is proposed
    #[arg(long, value_name = "NUMBER", default_value_t = MIN_CASES, value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) min_cases: u64,
    /// Apply the proposal with this number: edit its file, and raise the version
    #[arg(long, value_name = "NUMBER", requires = "module")]
    pub(crate) apply: Option<usize>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
