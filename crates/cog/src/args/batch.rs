//! Arguments of `batch`, which runs a module for each row of an input.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use cog_batch::{Concurrency, Format, MaxFailures, Order};

use super::{GenerationArgs, ModelArgs, run::CheckArgs};

/// `cog batch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each row of INPUT is the input of one run, and each result is one line of OUT: {\"row\": 0, \"ok\": true, \"meta\": …, \"data\": …}. \
A row that fails is a result with its error, and the batch goes on.

The results are stored in OUT.results and OUT.journal until the batch is complete. After an interruption, a crash or a \
full disk, the same command goes on: rows that have a result are not run again.

Exit codes: 0 if every row succeeded, 1 if a row failed or the batch was stopped, 2 if the arguments or the input do not \
fit, 130 if it was interrupted.

Examples:
  cog batch code-reviewer rows.jsonl -o results.jsonl
  cog batch my-module rows.csv -o results.csv --map query=question --ignore-unknown
  cog batch code-reviewer rows.jsonl -o results.jsonl --sample 20 --max-failures 5%
  cog batch code-reviewer rows.jsonl -o results.jsonl --where '$.language == \"python\"'
  cog batch code-reviewer rows.jsonl -o results.jsonl --retry-failed --rpm 500
  cat rows.jsonl | cog batch code-reviewer - -o - --format jsonl | jq -c .data")]
pub(crate) struct BatchArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// File of the rows, or `-` for stdin: JSON Lines (an object per line, or a text), or CSV whose columns are input fields
    pub(crate) input: PathBuf,
    /// File of the results, or `-` for stdout
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// Directory of the cache of answers, created if missing: an equal request returns the stored answer
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

/// Which rows run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct RowArgs {
    /// Format of INPUT [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,
    /// Column with the values of an input field, if their names differ
    #[arg(long, value_name = "FIELD=COLUMN", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// Ignore columns without an input field
    #[arg(long)]
    pub(crate) ignore_unknown: bool,
    /// Run only rows for which this condition is true; `$` is the input
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Option<String>,
    /// Run only the first rows; the same command without it goes on
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) sample: Option<u64>,
}

/// How fast rows run, and when the batch stops.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Rows that run at the same time, or `auto`: more while the latency holds, half as many when the provider is overloaded
    #[arg(long, short, value_name = "NUMBER", default_value = "auto", allow_negative_numbers = true)]
    pub(crate) concurrency: Concurrency,
    /// Maximum requests per minute
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) rpm: Option<u32>,
    /// Maximum tokens per minute, of inputs and outputs
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) tpm: Option<u64>,
    /// Stop before this start costs more than this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when more rows have failed than this number, or than this percentage of at least 100 rows
    #[arg(long, value_name = "NUMBER|PERCENT%", allow_negative_numbers = true)]
    pub(crate) max_failures: Option<MaxFailures>,
}

/// Where the results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResultArgs {
    /// Order of the results: that of the input, or that in which they finish (`free`)
    #[arg(long, value_name = "ORDER", default_value = "input", value_parser = PossibleValuesParser::new(["input", "free"]).map(order))]
    pub(crate) order: Order,
    /// Format of OUT [default: by its extension, otherwise jsonl]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) output_format: Option<Format>,
    /// Run the rows again that failed
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Go on although the module, the model, the options or the input have changed
    #[arg(long)]
    pub(crate) mixed: bool,
    /// Replace the results of a complete batch
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep OUT.results and OUT.journal when the batch is complete
    #[arg(long)]
    pub(crate) keep_journal: bool,
    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let parser = PossibleValuesParser::new(Format::NAMES);
    parser.try_map(|name| Format::from_name(&name).ok_or("unknown format"))
}

#[expect(clippy::needless_pass_by_value, reason = "clap passes the name by value")]
fn order(name: String) -> Order {
    if name == "free" { Order::Free } else { Order::Input }
}

fn mapping(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((field, column)) if !field.is_empty() && !column.is_empty() => {
            Ok((field.to_owned(), column.to_owned()))
        }
        _ => Err("write FIELD=COLUMN, such as query=question"),
    }
}

fn dollars(text: &str) -> Result<f64, &'static str> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok();
    amount.filter(|it| it.is_finite() && *it > 0.0).ok_or("not an amount of US dollars, such as 2.50")
}
