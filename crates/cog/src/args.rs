//! The command-line arguments: clap types and help texts, without behaviour.

mod about;
mod batch;
mod calibrate;
mod contract;
mod handoff;
mod help;
#[cfg(feature = "nats")]
mod jobs;
mod logs;
mod media;
mod messages;
mod model;
mod module;
mod run;
mod serve;

use std::str::FromStr;

use clap::{
    ArgAction, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use cog_spec::ParseEnumError;

#[cfg(feature = "nats")]
pub(crate) use self::jobs::{FailedArgs, FailedListArgs, QueueArgs, QueueCommand};
#[cfg(feature = "lsp")]
pub(crate) use self::module::LspArgs;
#[cfg(feature = "nats")]
pub(crate) use self::serve::WorkerArgs;
#[cfg(feature = "mcp")]
pub(crate) use self::serve::{
    McpArgs, McpCallArgs, McpCommand, McpLoginArgs, McpLogoutArgs, McpServeArgs, McpToolsArgs,
};
pub(crate) use self::{
    about::{
        CapabilitiesArgs, CompletionsArgs, ConfigArgs, ConformanceArgs, DocsArgs, DoctorArgs, ErrorsArgs,
        ListFormat, ManArgs, SchemaArgs, SchemaName, TrustArgs,
    },
    batch::{BatchArgs, BatchCommand, JobsArgs, JobsCommand, PlanFormat, StatusArgs},
    calibrate::CalibrateArgs,
    contract::{DiffArgs, InsightsArgs, OptimizeArgs, StrongModel},
    handoff::{
        CiteArgs, CiteCheckArgs, CiteCommand, CiteSource, HandoffApplyArgs, HandoffArgs, HandoffCheckArgs,
        HandoffCommand, HandoffNewArgs, HandoffShowArgs,
    },
    help::command,
    logs::{
        CacheArgs, CacheClearArgs, CacheCommand, CacheStatsArgs, LabelFilter, LogsArgs, LogsClearArgs,
        LogsCommand, LogsLabelArgs, LogsListArgs, LogsReplayArgs, LogsShowArgs, ReviewArgs, TraceArgs,
        TraceCommand, TraceFormat, TraceShowArgs,
    },
    media::{CheckArgs, FramesArgs, MediaArgs, MediaCommand, ProbeArgs, StripArgs, TextArgs},
    messages::{
        ArchiveArgs, ConvertArgs, CountArgs, ExpandArgs, FixArgs, MessagesArgs, MessagesCommand, TrimArgs,
    },
    model::{GenerationArgs, ModelArgs},
    module::{
        ExamplesArg, ExportArgs, ExportFormat, GraphArgs, GraphFormat, ImportArgs, InfoArgs, Language,
        LevelArgs, ListArgs, MigrateArgs, NewArgs, PortabilityArgs, TypesArgs, ValidateArgs, ValidateFormat,
        VerifyArgs,
    },
    run::{
        HandoffToArgs, InputArgs, MediaFlags, OutputArgs, RenderArgs, ReportFormat, RequestArgs, Required,
        RunArgs, TestAddArgs, TestArgs, TestCommand, TestCommandArgs, TestImportArgs, ToolArgs,
    },
    serve::{HealthcheckArgs, OfferedArgs, OpenArgs, ServeArgs},
};

/// Runs Cognitive Modules: typed, validated answers from language models.
#[derive(Debug, Parser)]
#[command(
    name = "cog",
    version,
    arg_required_else_help = true,
    infer_subcommands = false,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
`cog help COMMAND` explains a command. `cog docs` opens the documentation.

A MODULE is a name (see `cog list`) or the path of a directory.

Exit codes:
  0    success
  1    the run, a check or the command failed; a run then prints an envelope with `ok: false`
  2    invalid arguments or settings
  3    invalid module
  4    a batch stopped before its end
  5    an answer that did not pass its gate, and should be reviewed
  130  interrupted

Examples:
  cog run code-reviewer --args \"eval(input())\"
  cog run code-reviewer input.json | jq .data.issues
  cog new my-module && cog validate my-module";

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Log requests and replies to stderr; -vv adds chunks and, for `cog run`, their contents
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Format of the log on stderr
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", hide_possible_values = false)]
    pub(crate) log_format: LogFormat,
    /// When to use colour [default: on a terminal, unless NO_COLOR is set; always with CLICOLOR_FORCE]
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorChoice,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands. `help.rs` groups them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module and print its envelope
    Run(Box<RunArgs>),
    /// Run a module for each row of a file
    Batch(BatchCommand),
    /// Print what a run would send, without sending it
    Render(Box<RenderArgs>),
    /// Serve modules over HTTP
    Serve(ServeArgs),
    /// Open the workbench in a browser: write, run, test and label modules
    Open(OpenArgs),
    /// Check that a server accepts requests
    Healthcheck(HealthcheckArgs),
    /// Serve modules as MCP tools
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Run jobs from a NATS queue
    #[cfg(feature = "nats")]
    Worker(WorkerArgs),
    /// List, retry or remove the jobs of a NATS queue that could not be run
    #[cfg(feature = "nats")]
    Jobs(QueueArgs),
    /// Run the golden tests of modules
    Test(Box<TestCommandArgs>),
    /// Measure what the confidence of a module is worth, and find a threshold
    Calibrate(CalibrateArgs),
    /// Show past runs, or run one again
    Logs(LogsArgs),
    /// Label the answers of past runs, one at a time
    Review(ReviewArgs),
    /// Show the messages of a run as a timeline
    Trace(TraceArgs),
    /// Show or clear the answer cache
    Cache(CacheArgs),
    /// Check a document against the specification
    Verify(VerifyArgs),
    /// Inspect media files
    Media(MediaArgs),
    /// Fix and convert message histories
    Messages(MessagesArgs),
    /// Hand a task over to another agent
    Handoff(HandoffArgs),
    /// Check the citations of an answer
    Cite(CiteArgs),
    /// List the available modules
    List(ListArgs),
    /// Show a module's manifest, input and output
    Info(InfoArgs),
    /// Show which parts of a module's contract each provider enforces
    Portability(PortabilityArgs),
    /// Check module files
    Validate(ValidateArgs),
    /// Show what changed between two versions of a module, and for whom
    Diff(DiffArgs),
    /// Count what runs showed that the contract did not foresee
    Insights(InsightsArgs),
    /// Improve the prompt of a module on its golden tests
    Optimize(Box<OptimizeArgs>),
    /// Draw the modules that a composition calls
    Graph(GraphArgs),
    /// Print module types for another language
    Types(TypesArgs),
    /// Export a module to the format of another program
    Export(ExportArgs),
    /// Draft a module from an Agent Skill
    Import(ImportArgs),
    /// Create a module
    #[command(visible_alias = "init")]
    New(NewArgs),
    /// Upgrade modules to a newer format
    Migrate(MigrateArgs),
    /// Serve an editor: diagnostics, completion and rename in the files of modules
    #[cfg(feature = "lsp")]
    Lsp(LspArgs),
    /// Let the modules of a directory call tools
    Trust(TrustArgs),
    /// Show which providers are configured and respond
    Doctor(DoctorArgs),
    /// Print every setting and its source
    Config(ConfigArgs),
    /// Print the capabilities of this runtime
    Capabilities(CapabilitiesArgs),
    /// Check which level of the specification a runtime meets
    Conformance(ConformanceArgs),
    /// Print a JSON Schema of the specification
    Schema(SchemaArgs),
    /// Explain the error codes
    Errors(ErrorsArgs),
    /// Open the documentation in a browser
    Docs(DocsArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
    /// Print a manual page
    Man(ManArgs),
}

impl Command {
    /// Whether the command can log what models write: only a run, whose user asks and reads the log. Servers, workers and batches
    /// process other people's data.
    pub(crate) fn may_log_contents(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// Whether the command serves others until it is ended.
    pub(crate) fn is_server(&self) -> bool {
        match self {
            Self::Serve(_) | Self::Open(_) => true,
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => matches!(args.command, McpCommand::Serve(_)),
            #[cfg(feature = "nats")]
            Self::Worker(_) => true,
            _ => false,
        }
    }
}

/// Parses one of `names`, which help and completion show.
fn keyword<T: FromStr<Err = ParseEnumError> + Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}
