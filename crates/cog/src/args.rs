//! What can be typed. Types and help texts; nothing here acts.

mod about;
mod media;
mod model;
mod module;
mod run;
mod serve;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

pub(crate) use self::{
    about::{
        CapabilitiesArgs, CompletionsArgs, ConfigArgs, DoctorArgs, ErrorsArgs, ListFormat, ManArgs,
        SchemaArgs, SchemaName,
    },
    media::{CheckArgs, FramesArgs, MediaArgs, MediaCommand, ProbeArgs, StripArgs, TextArgs},
    model::{GenerationArgs, ModelArgs},
    module::{InfoArgs, LevelArgs, ListArgs, MigrateArgs, NewArgs, ValidateArgs, VerifyArgs},
    run::{InputArgs, MediaFlags, OutputArgs, RenderArgs, ReportFormat, RunArgs, TestArgs},
    serve::ServeArgs,
};

/// Runs Cognitive Modules: a language model's answer as a checked envelope.
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
A MODULE is a name (`cog list`) or the path of a folder.

Exit codes:
  0    done
  1    the envelope says `ok: false`, a check found something, or the work could not be done
  2    the arguments or a settings file cannot be understood
  3    the module is invalid
  130  interrupted

Examples:
  cog run code-reviewer --args \"eval(input())\"
  cog run code-reviewer input.json | jq .data.issues
  cog new my-module && cog validate my-module";

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Tell more on stderr: who is asked, and the reply as it came; twice: its reasoning, and each piece as it arrives
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// How the log on stderr is written
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", hide_possible_values = false)]
    pub(crate) log_format: LogFormat,
    /// When to colour [default: on a terminal, unless NO_COLOR is set]
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(crate) color: ColorChoice,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module and print its envelope
    Run(RunArgs),
    /// Print what a run would send, without sending it
    Render(RenderArgs),
    /// Serve modules over HTTP
    Serve(ServeArgs),
    /// Run the golden tests of modules
    Test(TestArgs),
    /// Check anything the specification describes, whoever produced it
    Verify(VerifyArgs),
    /// Look at media as runs do
    Media(MediaArgs),
    /// List the modules that are found
    List(ListArgs),
    /// Show what a module is, takes and answers
    Info(InfoArgs),
    /// Check the documents of modules
    Validate(ValidateArgs),
    /// Make a module
    #[command(visible_alias = "init")]
    New(NewArgs),
    /// Take modules of older formats to a newer one
    Migrate(MigrateArgs),
    /// Show which providers are set up and answer
    Doctor(DoctorArgs),
    /// Print every setting with where it came from
    Config(ConfigArgs),
    /// Print what this runtime can do
    Capabilities(CapabilitiesArgs),
    /// Print a JSON Schema of the specification
    Schema(SchemaArgs),
    /// Explain the error codes
    Errors(ErrorsArgs),
    /// Print a script that completes commands in a shell
    Completions(CompletionsArgs),
    /// Print a manual page
    Man(ManArgs),
}
