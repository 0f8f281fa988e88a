//! Arguments of `run`, `render` and `test`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use cog_host::settings::Flags;
use cog_spec::{ChunkType, EvidenceRequest, OnViolation, Risk};

use super::{GenerationArgs, ModelArgs, batch::dollars, calibrate::share, keyword, model::providers};

/// The module and its input.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Module name, or path of its directory
    #[arg(required = true, index = 1)]
    pub(crate) module: Option<String>,
    /// Input: a JSON file, an http(s) URL, or `-` for stdin [default: piped text or packet if the module requires one, otherwise an empty object]
    #[arg(value_name = "INPUT", index = 2, conflicts_with_all = ["args", "input_json"])]
    pub(crate) input: Option<PathBuf>,
    /// Input as text, for the text field of the module's schema; `-` for stdin, `@FILE` for a file
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "input_json")]
    pub(crate) args: Option<String>,
    /// Input as JSON
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input_json: Option<String>,
    #[command(flatten)]
    pub(crate) media: MediaFlags,
}

/// Media files to add to the input.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Media")]
pub(crate) struct MediaFlags {
    /// Image file or http(s) URL, added to the input field for images
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<OsString>,
    /// Audio file or URL
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Vec<OsString>,
    /// Video file or URL
    #[arg(long, value_name = "FILE")]
    pub(crate) video: Vec<OsString>,
    /// PDF file or URL
    #[arg(long, value_name = "FILE")]
    pub(crate) pdf: Vec<OsString>,
    /// Media file or URL for the named input field
    #[arg(long, value_name = "FIELD=FILE", value_parser = named_file)]
    pub(crate) file: Vec<NamedFile>,
}

/// The value of `--file`.
#[derive(Debug, Clone)]
pub(crate) struct NamedFile {
    /// The field of the input.
    pub(crate) field: String,
    /// A file or a URL.
    pub(crate) source: OsString,
}

fn named_file(text: &str) -> Result<NamedFile, &'static str> {
    match text.split_once('=') {
        Some((field, source)) if !field.is_empty() && !source.is_empty() => {
            Ok(NamedFile { field: field.to_owned(), source: source.into() })
        }
        _ => Err("write FIELD=FILE, such as photo=a.png"),
    }
}

impl MediaFlags {
    /// Whether no media flag was given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { image, audio, video, pdf, file } = self;
        [image, audio, video, pdf].iter().all(|list| list.is_empty()) && file.is_empty()
    }
}

impl InputArgs {
    /// Returns the name or path of the module; empty if a halted run continues without it.
    pub(crate) fn module(&self) -> &str {
        self.module.as_deref().unwrap_or_default()
    }

    /// Whether no input was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_none() && self.args.is_none() && self.input_json.is_none() && self.media.is_empty()
    }
}

/// Where the output goes, and its form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print indented JSON, even on a terminal
    #[arg(long)]
    pub(crate) pretty: bool,
    /// Write JSON to a file instead of stdout; the directory must exist
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Streaming of the answer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Streaming")]
pub(crate) struct StreamArgs {
    /// Stream the answer: in a pipe, one JSON chunk per line; on a terminal, live fields
    #[arg(long, conflicts_with = "pretty")]
    pub(crate) stream: bool,
    /// Fail with E4010 if the module does not stream
    #[arg(long, requires = "stream")]
    pub(crate) require_streaming: bool,
    /// Send the changes to each field (`delta`) or all of `data` (`snapshot`) [default: from the manifest]
    #[arg(long, value_name = "TYPE", requires = "stream", value_parser = keyword::<ChunkType>(ChunkType::NAMES))]
    pub(crate) chunk_type: Option<ChunkType>,
    /// Bytes to buffer before sending, for at most 50 ms [default: from the manifest]
    #[arg(long, value_name = "BYTES", requires = "stream", allow_negative_numbers = true)]
    pub(crate) buffer_size: Option<u64>,
}

/// Validation of the answer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checks")]
pub(crate) struct CheckArgs {
    /// Reject answers that needed any repair (E3001)
    #[arg(long)]
    pub(crate) strict: bool,
    /// Mark the answer for a review unless this share of such answers is right, such as 0.95 (exit code 5)
    ///
    /// The share is measured by `cog calibrate`. Without a calibration of the model, no answer is accepted. The gate of the
    /// manifest stays, if it requires more.
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub(crate) accept: Option<f64>,
    /// Call the next provider also after a bad answer: E2001, E2003, or a contract violation or failed check after all attempts
    #[arg(long)]
    pub(crate) escalate: bool,
    /// Reaction to a contract violation [default: from the manifest, or call the model once more at the end]
    #[arg(long, value_name = "ACTION", value_parser = keyword::<OnViolation>(OnViolation::NAMES))]
    pub(crate) on_violation: Option<OnViolation>,
    /// Maximum calls to the model, including the first; 1 never retries [default: from the manifest, or 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) max_attempts: Option<u32>,
    /// Evidence to collect about the answer, such as `agreement=5,grounding` [default: from the manifest]
    ///
    /// `agreement` compares 5 runs of the request, or another number of them; `grounding` searches for the strings of the answer in
    /// the input; `judge` has the answer judged by `answer-judge` or, with `judge=MODULE`, by another module; `logprob` requests the
    /// probabilities of tokens; `none` collects nothing. The result is `meta.evidence`. Further calls cost as much as the first.
    #[arg(long, value_name = "LIST")]
    pub(crate) evidence: Option<EvidenceRequest>,
}

/// What `run` and `render` share.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

/// Tool calls of a run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArgs {
    /// Continue a run that awaits confirmation (`error.details.halted.id` in its envelope) or was interrupted (stderr
    /// shows the command)
    #[arg(long = "continue", value_name = "ID", conflicts_with_all = ["input", "args", "input_json"], help_heading = "Continuation")]
    pub(crate) continues: Option<String>,
    /// Approve the pending call; the value must be YES
    #[arg(long, value_name = "TEXT", requires = "continues", help_heading = "Continuation")]
    pub(crate) confirm: Option<String>,
    /// Deny the pending call, and continue without it
    #[arg(long, requires = "continues", conflicts_with = "confirm", help_heading = "Continuation")]
    pub(crate) deny: bool,
    /// Risk of the run; if it is `high`, every tool that changes something requires confirmation
    #[arg(long, value_name = "LEVEL", value_parser = keyword::<Risk>(Risk::NAMES))]
    pub(crate) risk: Option<Risk>,
    /// Maximum number of tool rounds, up to `tools.max_rounds`
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) max_tool_rounds: Option<u32>,
}

/// The agent that takes over from a run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Handoff")]
pub(crate) struct HandoffToArgs {
    /// Agent that takes over; `handoff` in the answer becomes its packet
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    pub(crate) handoff_to: Option<String>,
    /// File for the packet [default: handoff-AGENT.json]
    #[arg(long, value_name = "FILE", requires = "handoff_to", value_parser = packet_file)]
    pub(crate) handoff_out: Option<PathBuf>,
}

fn agent(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("name an agent, such as coder"),
        agent => Ok(agent.to_owned()),
    }
}

fn packet_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "-" => Err("stdout is the envelope; its member `_handoff` is the packet"),
        file => Ok(PathBuf::from(file)),
    }
}

/// `cog run`.
#[derive(Debug, Args)]
#[command(mut_arg("module", |module| module.required(false).required_unless_present_any(["continues", "continue_last"])))]
#[command(after_help = "\
On a terminal, prints a summary card; in a pipe or with --pretty, JSON. Every run prints an envelope, even when it \
fails, unless the arguments are invalid.

With --stream, writes each chunk as it arrives, to stdout or to the file given with -o. The last chunk is `final` or an \
error. An error before the call to the model, such as invalid input, is printed as an envelope.

A tool call that requires confirmation ends the run with E4007. `cog run --continue ID --confirm YES` executes the call, \
and --deny continues without it.

With --state-dir, an interrupted composition or run with tools continues with `cog run --continue ID --state-dir DIR`; \
stderr shows the complete command. Finished parts and tool calls do not run again. A run that awaits confirmation \
continues without --state-dir.

With -c, the input and the answer of the module's last successful run become the last turn of `conversation_history`, \
which the module must accept. The run log must store contents (COG_LOGS_CONTENTS=true). The provider and the model are \
the same as in that run, unless they are given.

With --handoff-to, `handoff` in the answer becomes a packet, which the next agent's module takes as its input.

Examples:
  cog run code-reviewer --args \"eval(input())\"
  cog run code-reviewer input.json | jq .data.issues
  git diff | jq -Rs '{code: .}' | cog run code-reviewer - --provider anthropic
  cog run ./my-module --input-json '{\"query\": \"…\"}' --strict -o answer.json
  cog run code-reviewer --args \"eval(input())\" --evidence agreement=5
  cog run image-analyzer --image photo.jpg --args \"What is this?\"
  cog run image-generator --args \"A lighthouse at dawn\" --media-dir out --provider offline
  cog run code-reviewer input.json --record tape && cog run code-reviewer input.json --replay tape
  cog run planner --args \"Build a snake game\" --handoff-to coder
  cog run code-reviewer input.json --stream | jq -c .chunk.field")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Continue the last conversation (with MODULE, if given); the module receives the earlier turns as context
    #[arg(long, short = 'c', conflicts_with_all = ["continues", "replay"], help_heading = "Continuation")]
    pub(crate) continue_last: bool,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) handoff: HandoffToArgs,
    /// Record the raw exchange with the provider in a directory
    #[arg(long, value_name = "DIR", conflicts_with = "replay", help_heading = "Storage")]
    pub(crate) record: Option<PathBuf>,
    /// Replay a recorded exchange, without a key or a provider call
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    pub(crate) replay: Option<PathBuf>,
    /// Directory of the answer cache, created if missing; an identical request returns the stored answer
    #[arg(long, value_name = "DIR", conflicts_with_all = ["record", "replay"], help_heading = "Storage")]
    pub(crate) cache: Option<PathBuf>,
    /// Directory for the context that modules emit, and for unfinished compositions and runs with tools, created if
    /// missing [default: nothing is stored]
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Write every message of the run, with its tokens, cost and time, to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// Write generated media to files in this directory, created if missing [default: base64 in the answer]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) media_dir: Option<PathBuf>,
}

/// `cog render`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints {\"messages\": […], \"request\": {…}}: the messages, and the HTTP request in the provider's format. Keys are \
replaced with the names of their variables, and media are truncated. When offline, there is no request.

Examples:
  cog render code-reviewer --args \"eval(input())\"
  cog render code-reviewer input.json --provider anthropic | jq .request.body
  cog render code-reviewer --args x | jq -r '.messages[0].content[0].text'
  cog render code-reviewer --args x --prefix --provider anthropic | jq .reaches_minimum")]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    /// Print only the prefix that is the same for every input, with its size and the minimum that the provider caches
    #[arg(long, help_heading = "Output")]
    pub(crate) prefix: bool,
}

/// The format of a test report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text.
    Human,
    /// One JSON object.
    Json,
    /// JUnit XML.
    Junit,
    /// One HTML page.
    Html,
    /// Annotations for GitHub Actions.
    Github,
}

/// `cog test`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
A golden test is a pair of files, tests/NAME.input.json and tests/NAME.expected.json. With --provider, the test calls \
the model; otherwise, it replays the recording tests/NAME.cassette. Without a provider or a recording, it only checks both \
files against the schema, and reports `contract only` instead of `passed`.

Examples:
  cog test code-reviewer
  cog test --all --format junit -o report.xml
  cog test my-module --provider openai --record
  cog test my-module --provider openai --repeat 10 --jobs 8
  cog test my-module --provider openai --repeat 5 --require 4/5
  cog test my-module --provider openai --failed
  cog test my-module --provider mistral --baseline openai.json
  cog test my-module --provider openai,anthropic --matrix --format html -o report.html
  cog test my-module --provider openai --model gpt-6-luna,gpt-6-sol --matrix
  cog test my-module --provider openai --forms --keep
  cog test my-module --provider openai --update"
)]
pub(crate) struct TestCommandArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TestCommand>,
    #[command(flatten)]
    pub(crate) test: TestArgs,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum TestCommand {
    /// Write golden tests from a CSV, JSON Lines or promptfoo file
    Import(TestImportArgs),
    /// Write a golden test of a labelled run
    Add(TestAddArgs),
}

/// `cog test add`.
#[derive(Debug, Args)]
#[command(after_help = "\
The run must be labelled right or corrected, and its contents must be stored. The test compares each field of the answer \
except its rationale. Media files of the input are copied to tests/ of the module.

Examples:
  cog test add --run 7fk2
  cog test add --run 7fk2 --name refund")]
pub(crate) struct TestAddArgs {
    /// ID of the run, or its first characters
    #[arg(long, value_name = "ID")]
    pub(crate) run: String,
    /// Name of the test [default: run-ID]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// `cog test import`.
#[derive(Debug, Args)]
#[command(after_help = "\
A table has columns with the names of input fields, and `expected.FIELD` for fields of the answer. `expected` is a whole \
answer as JSON, or the value of its only field; `judge` is a criterion for a model; `name` is the name of the case. JSON \
objects have the same members, or `input` and `expected`.

Of promptfoo, equals, not-equals, contains, contains-all, regex, is-json with one path, and llm-rubric are read. Other \
assertions are listed and left out. A case whose input has a golden test is left out.

Examples:
  cog test import cases.csv my-module
  cog test import cases.jsonl ./my-module
  cog test import promptfooconfig.yaml my-module")]
pub(crate) struct TestImportArgs {
    /// File with the cases: .csv, .tsv, .jsonl, .json, or .yaml of promptfoo
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Module name, or path of its directory [default: the working directory]
    #[arg(value_name = "MODULE")]
    pub(crate) module: Option<String>,
}

/// `cog test` without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Module names, or paths of their directories [default: the working directory]
    #[arg(value_name = "MODULE")]
    pub(crate) modules: Vec<String>,
    /// Every module in `cog list` that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Run only cases whose name contains this text; can be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) case: Vec<String>,
    /// Run only the cases that failed last
    ///
    /// A case failed if it was wrong or had no answer when it last ran. A module that was never tested runs completely.
    #[arg(long, conflicts_with = "forms")]
    pub(crate) failed: bool,
    /// Maximum number of cases to run at the same time
    #[arg(long, short, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) jobs: u32,
    /// Run each case this many times; it passes if every run passes
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true, hide_default_value = true)]
    pub(crate) repeat: u32,
    /// How many of the repeats must pass, such as 4/5
    #[arg(long, value_name = "PASSED/RUNS", value_parser = required, requires = "repeat", conflicts_with = "forms")]
    pub(crate) require: Option<Required>,
    /// Compare with a report of another run, of `--format json`
    ///
    /// Lists the cases that newly fail and newly pass, with the exact paired test (McNemar). The exit code is then 1 if the answers
    /// are worse (p < 0.05) or a case has no answer, and not because a case fails.
    #[arg(long, value_name = "FILE", conflicts_with = "forms")]
    pub(crate) baseline: Option<PathBuf>,
    /// Compare the comma-separated providers in --provider, or models in --model; each runs every case
    #[arg(long, requires = "provider", conflicts_with_all = ["record", "update"])]
    pub(crate) matrix: bool,
    /// Run every case on these providers, and show accuracy and cost if each unsure answer is asked of the next one
    ///
    /// One row for each threshold: an answer with at least this confidence is accepted, and any other one is asked of the next
    /// provider, as with `cog run --escalate`.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = providers(), hide_possible_values = true, ignore_case = true, conflicts_with_all = ["provider", "matrix", "record", "update", "forms", "repeat"])]
    pub(crate) cascade: Vec<String>,
    /// Run every case in each form in which the model can be asked, and compare the forms
    ///
    /// The report shows, for each form, how many answers are right with an exact 95 % interval, the exact paired test against
    /// the form in use, the runs whose first reply met the contract, and tokens, time and cost. With `--record`, each form is
    /// recorded; without a provider, these recordings are replayed.
    #[arg(long, conflicts_with_all = ["update", "require_model"])]
    pub(crate) forms: bool,
    /// Store the best form for the model in forms.json of the module, where the form `auto` finds it
    ///
    /// The form in use stays unless another is better: more often right according to the paired test (p < 0.05), or at least as
    /// often right and cheaper.
    #[arg(long, requires = "forms", conflicts_with = "case")]
    pub(crate) keep: bool,
    /// Stop calling the model when all calls together cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    /// Provider that judges `$judge` criteria in expected files [default: the provider under test]
    #[arg(long, value_name = "NAME", value_parser = providers(), hide_possible_values = true, ignore_case = true)]
    pub(crate) judge: Option<String>,
    /// Fail if a case has neither a provider nor a recording, and is only checked against the contract
    #[arg(long)]
    pub(crate) require_model: bool,
    /// Call the provider (from --provider or the settings), and record each case
    #[arg(long, conflicts_with = "repeat")]
    pub(crate) record: bool,
    /// Replace expected files with the answers that differ, except files that contain rules
    #[arg(long, conflicts_with = "repeat")]
    pub(crate) update: bool,
    /// Report format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReportFormat,
    /// Write the report to a file instead of stdout; the directory must exist
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

impl TestArgs {
    /// Returns the arguments of a test whose cases run on this model; without a provider, on their recordings.
    pub(crate) fn on(provider: Option<String>, model: Option<String>) -> Self {
        Self {
            modules: Vec::new(),
            all: false,
            case: Vec::new(),
            failed: false,
            jobs: 4,
            repeat: 1,
            require: None,
            baseline: None,
            matrix: false,
            cascade: Vec::new(),
            forms: false,
            keep: false,
            max_cost: None,
            judge: None,
            require_model: false,
            record: false,
            update: false,
            format: ReportFormat::Json,
            output: None,
            model: ModelArgs { provider: provider.into_iter().collect(), model, timeout: None, trust: false },
        }
    }

    /// Whether the flags name a provider that calls a model.
    pub(crate) fn names_provider(&self) -> bool {
        self.model.names_provider() || !self.cascade.is_empty()
    }

    /// Whether every case runs on each of several models.
    pub(crate) fn compares_models(&self) -> bool {
        self.matrix || !self.cascade.is_empty()
    }

    /// Returns the settings that the flags set.
    pub(crate) fn flags(&self) -> Flags {
        let provider = (!self.cascade.is_empty()).then(|| self.cascade.join(","));
        let flags = self.model.flags();
        Flags { provider: provider.or(flags.provider), ..flags }
    }
}

/// How many runs of a case must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) passed: u32,
    pub(crate) of: u32,
}

fn required(text: &str) -> Result<Required, &'static str> {
    let parts = text.split_once('/').and_then(|(passed, of)| Some((passed.parse().ok()?, of.parse().ok()?)));
    let required = parts.map(|(passed, of)| Required { passed, of });
    required.filter(|it| (1..=it.of).contains(&it.passed)).ok_or("not a number of runs, such as 4/5")
}
