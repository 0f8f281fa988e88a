//! `verify`, `list`, `info`, `validate`, `new`, `migrate`.

use std::path::PathBuf;

use clap::{Args, builder::PossibleValuesParser};
use cog_answer::verify::Kind;
use cog_spec::Tier;

use super::ListFormat;

/// `cog verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints {\"valid\", \"kind\", \"violations\": [{\"path\", \"rule\", \"message\"}]}; on a terminal the same as text. Exit code 0 \
or 1. With --module the answer is also checked against that module's schema and tier.

Examples:
  cog verify answer.json
  my-runtime code-reviewer | cog verify - --kind envelope --module code-reviewer
  curl -sN http://localhost:8000/run | cog verify - --kind stream")]
pub(crate) struct VerifyArgs {
    /// What is checked: a file, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What it is [default: found out]
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Kind::WORDS))]
    kind: Option<String>,
    /// Check it against this module's schema too
    #[arg(long, value_name = "MODULE")]
    pub(crate) module: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

impl VerifyArgs {
    /// What it is said to be.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.kind.as_deref().and_then(|word| word.parse().ok())
    }
}

/// `cog list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Looked through, in this order: ./cognitive/modules, ./.cognitive/modules, the folders of COGNITIVE_MODULES_PATH, \
~/.cognitive/modules; last the modules that are built in.

Examples:
  cog list
  cog list --format json | jq -r '.[].name'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog info code-reviewer
  cog info ./my-module --format json | jq .input")]
pub(crate) struct InfoArgs {
    /// The module: a name, or the path of its folder
    pub(crate) module: String,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 where nothing is wrong (warnings may be told), 3 where a module is invalid.

Examples:
  cog validate my-module
  cog validate --all --format json
  cog validate ./my-module --v22")]
pub(crate) struct ValidateArgs {
    /// The modules: names, or paths of folders
    #[arg(value_name = "MODULE", required_unless_present = "all")]
    pub(crate) modules: Vec<String>,
    /// Every module that `cog list` shows
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) level: LevelArgs,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// How much a module must be.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LevelArgs {
    /// The module must be a whole v2.2 module
    #[arg(long, conflicts_with = "v25")]
    pub(crate) v22: bool,
    /// The module must be a whole v2.5 module
    #[arg(long)]
    pub(crate) v25: bool,
}

/// `cog new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog new my-module
  cog new my-module --tier exec
  cog new my-reviewer --from code-reviewer
  cog new my-module --in cognitive/modules")]
pub(crate) struct NewArgs {
    /// The name: lower case letters, digits, hyphens
    pub(crate) name: String,
    /// Copy this module instead of the template
    #[arg(long, value_name = "MODULE", conflicts_with = "tier")]
    pub(crate) from: Option<String>,
    /// What its answers may be used for without a person
    #[arg(long, value_name = "TIER", default_value = "decision", value_parser = PossibleValuesParser::new(Tier::WORDS))]
    pub(crate) tier: String,
    /// The folder in which the module's folder is made
    #[arg(long = "in", value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
}

/// `cog migrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
v0, v1 and v2.1 become v2.2 by way of an envelope and a tier, v2.2 becomes v2.5 by way of a response mode. Comments \
and the order of keys are kept; a copy of the folder is left beside it. Migrating twice is migrating once.

Examples:
  cog migrate my-module --dry-run
  cog migrate my-module
  cog migrate --all --no-backup")]
pub(crate) struct MigrateArgs {
    /// The modules: names, or paths of folders
    #[arg(value_name = "MODULE", required_unless_present = "all")]
    pub(crate) modules: Vec<String>,
    /// Every module that `cog list` shows and that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// How far
    #[arg(long, value_name = "FORMAT", default_value = "v2.5", value_parser = ["v2.2", "v2.5"])]
    pub(crate) to: String,
    /// Print what would change as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave no copy of the old folder
    #[arg(long)]
    pub(crate) no_backup: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
