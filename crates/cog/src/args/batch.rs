//! Arguments of `batch`, which runs a module for each row of an input.

use std::{path::PathBuf, time::Duration};

use clap::{
    ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum,
    builder::{ArgPredicate, PossibleValuesParser, TypedValueParser},
};
use cog_batch::{Concurrency, Encoding, Format, MaxFailures, Order};
use cog_host::settings::parse_duration;
use cog_provider::batch::BATCH_VENDORS;

use super::{GenerationArgs, ListFormat, ModelArgs, run::CheckArgs};

/// The jobs in the queue of `--nats` at the same time, if no number is set.
const IN_QUEUE: Concurrency = Concurrency::Fixed(256);

/// `cog batch`: a batch, or a command about the jobs of one.
#[derive(Debug)]
pub(crate) enum BatchCommand {
    /// A batch.
    Run(Box<BatchArgs>),
    /// A command about jobs.
    Jobs(JobsCommand),
}

/// Written by hand: derived types cannot have required arguments together with subcommands.
impl FromArgMatches for BatchCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand_name() {
            Some(_) => JobsCommand::from_arg_matches(matches).map(Self::Jobs),
            None => BatchArgs::from_arg_matches(matches).map(|args| Self::Run(Box::new(args))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for BatchCommand {
    fn augment_args(command: Command) -> Command {
        let command = JobsCommand::augment_subcommands(BatchArgs::augment_args(command));
        command.subcommand_required(false).subcommand_negates_reqs(true).args_conflicts_with_subcommands(true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// What is done with a batch that was started before.
#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Print how far a batch is, from any directory and while it runs
    Status(StatusArgs),
    /// Wait for the jobs of a batch started with --via to end
    Wait(JobsArgs),
    /// Download and check the results of the jobs, and write the output
    Fetch(JobsArgs),
    /// Cancel the jobs at the vendor that are still running, or remove those in NATS from the queue
    Cancel(JobsArgs),
}

/// The output of a batch, and how its state is printed.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// The output of a batch.
#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Results file: the value of -o in the command that started the batch
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// As text on a terminal, otherwise as JSON.
    Auto,
    /// As text.
    Human,
    /// As JSON.
    Json,
}

/// A batch.
#[derive(Debug, Args)]
#[command(after_help = "\
Each row of INPUT is the input of one run. Each result is one line of OUT: {\"row\": 0, \"ok\": true, \"meta\": …, \"data\": …}. \
A row that fails is a result with its error, and the batch continues.

The results are stored in OUT.results and OUT.journal until the batch is complete. After an interruption, a crash or a \
full disk, run the same command again; it skips the rows that have a result.

Exit code 0 if every row succeeded, 1 if a row failed, 2 if the arguments or the input are invalid, 4 if the batch was \
stopped before its end, and 130 if it was interrupted.

Examples:
  cog batch code-reviewer rows.jsonl -o results.jsonl
  cog batch code-reviewer rows.jsonl --plan --provider openai
  cog batch my-module rows.csv -o results.csv --map query=question --ignore-unknown
  cog batch my-module rows.csv -o results.jsonl --map query=question --id id
  cog batch code-reviewer rows.jsonl -o results.jsonl --sample 20 --max-failures 5%
  cog batch code-reviewer rows.jsonl -o results.jsonl --where '$.language == \"python\"'
  cog batch code-reviewer rows.jsonl -o results.jsonl --retry-failed --rpm 500
  cog batch my-module rows.jsonl -o results.jsonl --via openai
  cog batch status results.jsonl
  cog batch my-module rows.jsonl -o results.jsonl --nats nats://localhost:4222
  cat rows.jsonl | cog batch code-reviewer - -o - --format jsonl | jq -c .data")]
pub(crate) struct BatchArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// File of rows, or `-` for stdin: JSON Lines (an object or a string per line), CSV with a column per input field, or a JSON array; also compressed (.gz, .zst)
    pub(crate) input: PathBuf,
    /// File for the results, or `-` for stdout
    #[arg(
        long,
        short,
        value_name = "FILE",
        help_heading = "Output",
        required = false,
        required_unless_present = "plan",
        default_value_if("plan", ArgPredicate::IsPresent, "-")
    )]
    pub(crate) output: PathBuf,
    /// Estimate rows, tokens, cost and time without sending anything; prints JSON unless stdout is a terminal
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with = "via"
    )]
    pub(crate) plan: Option<PlanFormat>,
    #[command(flatten)]
    pub(crate) via: ViaArgs,
    /// Queue the rows as jobs on these NATS servers, where `cog worker` runs them
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "URL", help_heading = "Batch jobs")]
    pub(crate) nats: Option<String>,
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// Directory of the answer cache, created if missing; an identical request returns the stored answer
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

impl BatchArgs {
    /// Returns the servers of `--nats`.
    #[cfg(feature = "nats")]
    pub(crate) fn nats(&self) -> Option<&str> {
        self.nats.as_deref()
    }

    /// Returns none: this program has no `--nats`.
    #[cfg(not(feature = "nats"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(crate) fn nats(&self) -> Option<&str> {
        None
    }

    /// Returns the rows that run at the same time. With `--nats`, the default is enough for several workers.
    pub(crate) fn concurrency(&self) -> Concurrency {
        match self.limits.concurrency {
            Concurrency::Auto if self.nats().is_some() => IN_QUEUE,
            concurrency => concurrency,
        }
    }
}

/// Jobs of a vendor instead of live calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Batch jobs")]
pub(crate) struct ViaArgs {
    /// Send the rows as jobs to this vendor's batch API: results within a day, at half the price
    #[arg(long, value_name = "VENDOR", value_parser = PossibleValuesParser::new(BATCH_VENDORS), conflicts_with_all = ["provider", "max_cost", "rpm", "tpm"])]
    pub(crate) via: Option<String>,
    /// Run a row live if its job has no valid answer for it
    #[arg(long, value_name = "HOW", value_parser = ["live"], requires = "via")]
    pub(crate) retry: Option<String>,
    /// Submit the jobs without waiting for their results
    #[arg(long, requires = "via")]
    pub(crate) no_wait: bool,
    /// Maximum number of rows in a job [default: the vendor's limit]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true, requires = "via")]
    pub(crate) job_rows: Option<u32>,
    /// Maximum time between two checks of the jobs' state
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) poll: Duration,
}

/// Which rows run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct RowArgs {
    /// Format of INPUT [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,
    /// Read an input field from the column, or the member of a JSON object, with another name
    #[arg(long, value_name = "FIELD=COLUMN", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// Ignore columns that match no input field
    #[arg(long)]
    pub(crate) ignore_unknown: bool,
    /// Column whose value becomes the `id` of each result
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Column that each result gets, in `kept`; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// Character between the values of a CSV file, or `tab` [default: a comma, and a tab in .tsv files]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, allow_hyphen_values = true)]
    pub(crate) delimiter: Option<u8>,
    /// Encoding of a text file, such as windows-1252 [default: UTF-8, or UTF-16 with a byte order mark]
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<Encoding>,
    /// Word that means no value in a CSV file, such as NA; may be repeated
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,
    /// Run only the rows for which this condition is true; `$` is the input
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) filter: Option<String>,
    /// Run only the first rows; the same command without --sample runs the rest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) sample: Option<u64>,
    /// Run identical inputs only once, and give every such row the same result
    #[arg(long)]
    pub(crate) dedupe: bool,
}

/// How fast rows run, and when the batch stops.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Number of rows to run at the same time; `auto` raises it while the latency holds, and halves it when the provider is overloaded
    #[arg(long, short, value_name = "NUMBER", default_value = "auto", allow_negative_numbers = true)]
    pub(crate) concurrency: Concurrency,
    /// Maximum requests per minute
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) rpm: Option<u32>,
    /// Maximum tokens per minute, input and output together
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) tpm: Option<u64>,
    /// Stop before this command costs more than this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    /// Stop when more than this number of rows have failed, or more than this percentage of at least 100 rows
    #[arg(long, value_name = "NUMBER|PERCENT%", allow_negative_numbers = true)]
    pub(crate) max_failures: Option<MaxFailures>,
}

/// Where the results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResultArgs {
    /// Order of the results: as in the input (`input`), or as they finish (`free`)
    #[arg(long, value_name = "ORDER", default_value = "input", value_parser = PossibleValuesParser::new(["input", "free"]).map(order))]
    pub(crate) order: Order,
    /// Format of OUT [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) output_format: Option<Format>,
    /// Put an apostrophe before strings of a CSV file that a spreadsheet would execute as formulas
    #[arg(long)]
    pub(crate) escape_formulas: bool,
    /// Run failed rows again
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Continue even if the module, the model, the options or the input have changed
    #[arg(long)]
    pub(crate) allow_changes: bool,
    /// Replace the results of a complete batch
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep OUT.results and OUT.journal after the batch is complete
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

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        _ if text.eq_ignore_ascii_case("tab") || text == "\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => Err("not one ASCII character, such as `;`, or `tab`"),
    }
}

pub(super) fn dollars(text: &str) -> Result<f64, &'static str> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok();
    amount.filter(|it| it.is_finite() && *it > 0.0).ok_or("not an amount of US dollars, such as 2.50")
}
