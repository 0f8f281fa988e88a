//! `run`, `render`, `test`.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};
use cog_spec::{ChunkType, OnViolation, UnknownWord};

use super::{GenerationArgs, ModelArgs};

/// What goes in.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The module: a name, or the path of its folder
    pub(crate) module: String,
    /// The input: a file of JSON, or `-` for stdin; none for an empty object
    #[arg(value_name = "INPUT", conflicts_with_all = ["args", "input_json"])]
    pub(crate) input: Option<PathBuf>,
    /// The input as text; it becomes the one text field that the module asks for
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "input_json")]
    pub(crate) args: Option<String>,
    /// The input as JSON
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input_json: Option<String>,
    #[command(flatten)]
    pub(crate) media: MediaFlags,
}

/// Media that go in beside the rest of the input.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Media")]
pub(crate) struct MediaFlags {
    /// A picture: a file, or an http(s) address; it goes into the field of the input that takes pictures
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<OsString>,
    /// A sound
    #[arg(long, value_name = "FILE")]
    pub(crate) audio: Vec<OsString>,
    /// A video
    #[arg(long, value_name = "FILE")]
    pub(crate) video: Vec<OsString>,
    /// A PDF
    #[arg(long, value_name = "FILE")]
    pub(crate) pdf: Vec<OsString>,
    /// A medium for a field of the input by its name
    #[arg(long, value_name = "FIELD=FILE", value_parser = named_file)]
    pub(crate) file: Vec<NamedFile>,
}

/// What `--file` names.
#[derive(Debug, Clone)]
pub(crate) struct NamedFile {
    /// The field of the input.
    pub(crate) field: String,
    /// A file, or an address.
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
    /// Whether none was given.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { image, audio, video, pdf, file } = self;
        [image, audio, video, pdf].iter().all(|list| list.is_empty()) && file.is_empty()
    }
}

impl InputArgs {
    /// Whether no input was given at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_none() && self.args.is_none() && self.input_json.is_none() && self.media.is_empty()
    }
}

/// Where the answer goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print JSON with line breaks, also on a terminal
    #[arg(long)]
    pub(crate) pretty: bool,
    /// Write the JSON into a file instead of to stdout; its folder must be there
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How the answer travels.
#[derive(Debug, Args)]
#[command(next_help_heading = "Streaming")]
pub(crate) struct StreamArgs {
    /// Give the answer while it arrives: in a pipe its chunks, one JSON object a line; on a terminal the fields as
    /// they fill
    #[arg(long, conflicts_with = "pretty")]
    pub(crate) stream: bool,
    /// Fail (E4010) where the module does not stream, instead of answering with one envelope
    #[arg(long, requires = "stream")]
    pub(crate) require_streaming: bool,
    /// How content travels: `delta`, the pieces of each field, or `snapshot`, all of `data` now and then; else as the
    /// manifest says
    #[arg(long, value_name = "TYPE", requires = "stream", value_parser = word::<ChunkType>)]
    pub(crate) chunk_type: Option<ChunkType>,
    /// How much is held back before it leaves, 50 ms at most; else as the manifest says
    #[arg(long, value_name = "BYTES", requires = "stream", allow_negative_numbers = true)]
    pub(crate) buffer_size: Option<u64>,
}

/// What the answer is held to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checks")]
pub(crate) struct CheckArgs {
    /// Refuse an answer that needed any repair (E3001)
    #[arg(long)]
    pub(crate) strict: bool,
    /// What a field that breaks the contract does: `report`, `abort`, or `retry`, which asks the model again; else as
    /// the manifest says
    #[arg(long, value_name = "WHAT", value_parser = word::<OnViolation>)]
    pub(crate) on_violation: Option<OnViolation>,
    /// How often the model is asked at most, the first time included; else as the manifest says
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) max_attempts: Option<u32>,
}

fn word<T: FromStr<Err = UnknownWord>>(text: &str) -> Result<T, UnknownWord> {
    text.parse()
}

/// `cog run`.
#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal the answer is shown as a card; in a pipe, or with --pretty, it is JSON. An envelope is printed \
whatever happens, unless the arguments cannot be understood.

With --stream every chunk is written when it comes, to stdout or into the file of -o; the last is `final` or an error. \
What is known before the model is asked, such as an input that does not fit, is one envelope.

Examples:
  cog run code-reviewer --args \"eval(input())\"
  cog run code-reviewer input.json | jq .data.issues
  git diff | jq -Rs '{code: .}' | cog run code-reviewer - --provider anthropic
  cog run ./my-module --input-json '{\"query\": \"…\"}' --strict -o answer.json
  cog run image-analyzer --image photo.jpg --args \"What is this?\"
  cog run image-generator --args \"A lighthouse at dawn\" --media-dir out --provider offline
  cog run code-reviewer input.json --record tape && cog run code-reviewer input.json --replay tape
  cog run code-reviewer input.json --stream | jq -c .chunk.field")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    /// Write the raw exchange with the provider into a folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Write the media that the module makes into files of this folder, made where it is not there; the answer names
    /// them. Else they stand in the answer as base64
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) media_dir: Option<PathBuf>,
    /// Answer from a recorded exchange; no key is needed, nobody is asked
    #[arg(long, value_name = "FOLDER")]
    pub(crate) replay: Option<PathBuf>,
}

/// `cog render`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints {\"messages\": […], \"request\": {…}}: the messages, and the request in the vendor's form. A key is shown as \
the name of its variable, a medium by its beginning. Offline there is no request.

Examples:
  cog render code-reviewer --args \"eval(input())\"
  cog render code-reviewer input.json --provider anthropic | jq .request.body
  cog render code-reviewer --args x | jq -r '.messages[0].content[0].text'")]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people.
    Human,
    /// One JSON object.
    Json,
    /// JUnit's XML.
    Junit,
}

/// `cog test`.
#[derive(Debug, Args)]
#[command(after_help = "\
A golden test is tests/NAME.input.json beside tests/NAME.expected.json. The provider given with --provider is asked; \
else the recording tests/NAME.cassette is replayed. With neither, only input and expected file are checked against \
the contract: `contract only`, which is not `passed`.

Examples:
  cog test code-reviewer
  cog test --all --format junit -o report.xml
  cog test my-module --provider openai --record
  cog test my-module --provider openai --update")]
pub(crate) struct TestArgs {
    /// The modules: names, or paths of folders
    #[arg(value_name = "MODULE", required_unless_present = "all")]
    pub(crate) modules: Vec<String>,
    /// Every module that `cog list` shows
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Only the cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) case: Option<String>,
    /// Ask the provider and write a recording of each case
    #[arg(long, requires = "provider")]
    pub(crate) record: bool,
    /// Ask, or replay, and write each answer that differs as the new expected file; not where the file says what an
    /// answer must fulfil
    #[arg(long)]
    pub(crate) update: bool,
    /// How the report is written
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReportFormat,
    /// Write the report into a file instead of to stdout; its folder must be there
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}
