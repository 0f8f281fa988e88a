//! Arguments of `types`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `cog types`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the types of the input, data, meta and error of modules, and a function for each module that runs it. The \
function uses the package `cognitive` in Python, `fetch` and a `cog serve` in TypeScript, and the crate `cog-run` in \
Rust. With `arrow`, it prints the columns of a table of results.

Exit code 1 if --check finds that a file is out of date.

Examples:
  cog types code-reviewer --lang python -o code_reviewer.py
  cog types code-reviewer code-analyzer --lang typescript -o modules.ts
  cog types ./my-module --lang rust --types-only
  cog types code-reviewer --lang arrow
  cog types code-reviewer --lang python -o code_reviewer.py --check
  cog types --stubs typings")]
pub(crate) struct TypesArgs {
    /// Module names, or paths of their directories [default: the working directory; with --stubs, every module]
    #[arg(value_name = "MODULE")]
    pub(crate) modules: Vec<String>,
    /// Every module in `cog list` that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Language to print
    #[arg(long, short, value_name = "LANG", required_unless_present = "stubs")]
    pub(crate) lang: Option<Language>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE", conflicts_with = "stubs")]
    pub(crate) output: Option<PathBuf>,
    /// Print only types, without functions
    #[arg(long, conflicts_with = "stubs")]
    pub(crate) types_only: bool,
    /// Write the stub of the Python package `cognitive.modules` to this directory, for type checkers and editors
    #[arg(long, value_name = "DIR", conflicts_with = "lang")]
    pub(crate) stubs: Option<PathBuf>,
    /// Compare with the file instead of writing it
    #[arg(long)]
    pub(crate) check: bool,
}

/// A language that types are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypedDicts, checked by mypy and pyright
    Python,
    /// Interfaces
    Typescript,
    /// Types with serde
    Rust,
    /// The columns of results in Parquet and Arrow
    Arrow,
    /// The columns as JSON
    ArrowJson,
}
