//! Arguments of `logs`, which shows past runs.

use clap::{Args, Subcommand};

use super::{
    GenerationArgs, ListFormat, ModelArgs, OutputArgs,
    run::{CheckArgs, StreamArgs},
};

/// `cog logs`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Every `cog run` is logged with its time, module, model, result, tokens and cost. Inputs and answers are stored only \
if `logs.contents` is set (COG_LOGS_CONTENTS=true). `cog config` shows the directory and the maximum size of the log.

Examples:
  cog logs
  cog logs --module code-reviewer -n 5
  cog logs show
  cog logs replay 7fk2 --model gpt-6-sol
  cog logs --limit 1000 --format json | jq 'map(.usage.cost.amount // 0) | add'"
)]
pub(crate) struct LogsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LogsCommand>,
    #[command(flatten)]
    pub(crate) list: LogsListArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum LogsCommand {
    /// Show one run, with its input and answer if they are stored
    Show(LogsShowArgs),
    /// Run the module again with the stored input
    Replay(Box<LogsReplayArgs>),
}

/// `cog logs` without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct LogsListArgs {
    /// Maximum number of runs to list, newest first
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) limit: u32,
    /// List only runs of this module
    #[arg(long, value_name = "MODULE")]
    pub(crate) module: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog logs show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog logs show
  cog logs show 7fk2
  cog logs show --format json | jq .contents.envelope | cog verify -")]
pub(crate) struct LogsShowArgs {
    /// ID of the run, or its first characters [default: the last run]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog logs replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Calls the provider and the model of the logged run, unless --provider or --model is given. The input is only stored \
if `logs.contents` is set when the module runs.

Examples:
  cog logs replay
  cog logs replay 7fk2
  cog logs replay 7fk2 --provider anthropic")]
pub(crate) struct LogsReplayArgs {
    /// ID of the run, or its first characters [default: the last run]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
}
