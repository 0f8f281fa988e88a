//! Arguments of `logs`, `review`, `trace` and `cache`, which show what past runs have stored.

use std::path::PathBuf;

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use cog_run::feedback::LabelKind;

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
  cog logs label 7fk2 wrong --note \"The issue is no injection.\"
  cog logs --label wrong
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
    /// Say whether the answer of a run is right
    Label(LogsLabelArgs),
    /// Remove every run from the log
    Clear(LogsClearArgs),
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
    /// List only runs whose last label is this one; `any` for labelled runs, `none` for the others
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<LabelFilter>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// Which runs `cog logs` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabelFilter {
    /// The answer is right.
    Right,
    /// The answer is wrong.
    Wrong,
    /// The answer was corrected.
    Corrected,
    /// The run has a label.
    Any,
    /// The run has no label.
    None,
}

impl LabelFilter {
    /// Whether a run with this last label is listed.
    pub(crate) fn accepts(self, label: Option<LabelKind>) -> bool {
        match self {
            Self::Right => label == Some(LabelKind::Right),
            Self::Wrong => label == Some(LabelKind::Wrong),
            Self::Corrected => label == Some(LabelKind::Corrected),
            Self::Any => label.is_some(),
            Self::None => label.is_none(),
        }
    }
}

/// `cog logs label`.
#[derive(Debug, Args)]
#[command(after_help = "\
A corrected answer is the data of an envelope, or an envelope. It is checked against the schema of the module. A run can be labelled \
again: the last label counts, and `cog logs show` lists all of them.

Examples:
  cog logs label 7fk2 right
  cog logs label 7fk2 wrong --note \"The issue is no injection.\"
  cog logs label 7fk2 corrected --data answer.json")]
pub(crate) struct LogsLabelArgs {
    /// ID of the run, or its first characters
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Whether the answer is right
    #[arg(value_name = "LABEL", value_parser = label_kind())]
    pub(crate) label: LabelKind,
    /// The right answer as JSON, for `corrected`; `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Why, in a sentence
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

fn label_kind() -> impl clap::builder::TypedValueParser<Value = LabelKind> {
    PossibleValuesParser::new(LabelKind::ALL.map(LabelKind::as_str)).try_map(|name| name.parse::<LabelKind>())
}

/// `cog logs clear`.
#[derive(Debug, Args)]
#[command(after_help = "\
Labels stay, unless --labels is given: calibrations read them without the log.

Examples:
  cog logs clear
  cog logs clear --labels")]
pub(crate) struct LogsClearArgs {
    /// Remove every label too
    #[arg(long)]
    pub(crate) labels: bool,
}

/// `cog review`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows one run at a time, the newest first: input, answer, confidence and evidence. Press r for right, w for wrong, e to \
correct the answer in your editor ($VISUAL, $EDITOR, otherwise vi), s to skip, b to go back, and q to quit. Each label \
is stored at once. Runs without stored contents are left out.

Examples:
  cog review
  cog review code-reviewer
  cog review code-reviewer --below 0.8
  cog review --gate failed
  cog review code-reviewer --all -n 50")]
pub(crate) struct ReviewArgs {
    /// Review only runs of this module: its name, or path of its directory
    #[arg(value_name = "MODULE")]
    pub(crate) module: Option<String>,
    /// Maximum number of runs to review
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) limit: u32,
    /// Review labelled runs too
    #[arg(long)]
    pub(crate) all: bool,
    /// Review only answers whose confidence is below this number from 0 to 1
    #[arg(long, value_name = "CONFIDENCE", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) below: Option<f64>,
    /// Review only answers that passed or failed their gate
    #[arg(long, value_name = "RESULT")]
    pub(crate) gate: Option<GateFilter>,
}

/// Which answers `cog review` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateFilter {
    /// The answer passed the gate of its module.
    Passed,
    /// The answer, or a part of it, did not.
    Failed,
}

impl GateFilter {
    /// Whether an answer is shown that passed its gate, or did not, or had none.
    pub(crate) fn accepts(self, passed: Option<bool>) -> bool {
        passed == Some(self == Self::Passed)
    }
}

fn confidence(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or("a confidence is a number from 0 to 1")
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

/// `cog trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show each message with its author, and a bar for its time
    Show(TraceShowArgs),
}

/// The format of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Text, as wide as the terminal.
    Text,
    /// One JSON object.
    Json,
    /// One HTML page.
    Html,
}

/// `cog trace show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows each message with its author, model, time, tokens and cost, and with its text, tool calls, results and media. The \
bar of a message is its time in the run. Unknown tokens and costs are shown as `unknown`. Any message history can be \
shown.

JSON is {\"messages\": [{\"index\", \"role\", \"name\", \"model\", \"start_ms\", \"duration_ms\", \"usage\", \"content\", …}], \
\"totals\"}. HTML is one page without scripts or external files.

Examples:
  cog run code-reviewer --args \"eval(input())\" --trace trace.json
  cog trace show trace.json
  cog trace show trace.json --format html -o trace.html
  cog trace show trace.json --format json | jq .totals")]
pub(crate) struct TraceShowArgs {
    /// Trace of a run, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: TraceFormat,
    /// Write to a file instead of stdout; the directory must exist
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

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
