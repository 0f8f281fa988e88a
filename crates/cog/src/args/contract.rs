//! Arguments of `diff`, `insights` and `optimize`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use cog_contract::insights::MIN_CASES;

use super::{ListFormat, ModelArgs, batch::dollars};

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

/// `cog optimize`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("limit").required(true).multiple(true),
    after_help = "\
The golden tests are split into thirds before anything is measured: prompts are written from the failures of the first, \
compared on the second, and the best one is only proposed if the last third is not against it. Fewer than 12 different \
inputs are refused.

A limit is required. It is never exceeded: before the first call, it must allow at least one full step at the highest \
price that the calls can have.

Examples:
  cog optimize ./my-module -p openai --model gpt-6-luna --with openai/gpt-6-sol --max-cost 5
  cog optimize ./my-module -p anthropic --with gemini --max-calls 300 --apply
  cog optimize ./my-module -p openai --model gpt-6-luna --examples --max-cost 2"
)]
pub(crate) struct OptimizeArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Model that writes the prompts: a provider, or a provider and its model
    #[arg(long, value_name = "PROVIDER[/MODEL]", value_parser = strong_model, required_unless_present = "examples")]
    pub(crate) with: Option<StrongModel>,
    /// Show golden answers as examples in the prompt, and do not rewrite it
    #[arg(long, conflicts_with = "with")]
    pub(crate) examples: bool,
    /// Maximum cost of all calls in US dollars
    #[arg(long, value_name = "USD", group = "limit", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    /// Maximum number of calls to models
    #[arg(long, value_name = "NUMBER", group = "limit", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) max_calls: Option<u64>,
    /// Model that judges the criteria of `$judge` [default: the one of --with, or of the module]
    #[arg(long, value_name = "PROVIDER[/MODEL]", value_parser = strong_model)]
    pub(crate) judge: Option<StrongModel>,
    /// Maximum number of prompts to write
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) steps: u32,
    /// Number that decides which cases and prompts are chosen
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Maximum number of cases at the same time
    #[arg(short, long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub(crate) jobs: u32,
    /// Write the proposed prompt to prompt.md, and raise the version
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// A provider and, if it is not its default, its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StrongModel {
    /// The name of the provider.
    pub(crate) provider: String,
    /// The model; none for the provider's default.
    pub(crate) model: Option<String>,
}

fn strong_model(text: &str) -> Result<StrongModel, String> {
    let (provider, model) = match text.split_once('/') {
        Some((provider, model)) => (provider, Some(model.to_owned())),
        None => (text, None),
    };
    let provider = provider.to_ascii_lowercase();
    let is_known = cog_provider::provider_names().into_iter().any(|name| name == provider.as_str());
    match is_known && provider != cog_provider::OFFLINE && model.as_deref() != Some("") {
        true => Ok(StrongModel { provider, model }),
        false => Err("not a provider; `cog doctor --all` lists them".to_owned()),
    }
}
