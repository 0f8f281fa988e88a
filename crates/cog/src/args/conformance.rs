//! Arguments of `conformance`, which checks a runtime.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::ListFormat;

/// `cog conformance`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs the built-in cases of the four levels of the specification over HTTP, with a scripted model. Prints the level \
reached and what is missing. Without --url, checks this program.

To check another runtime, write the modules of the cases with --write-modules, and start the runtime with them. Its \
provider must be OpenAI Chat Completions at http://127.0.0.1:PORT/v1, where PORT is the value of --mock-port.

Prints {\"level\", \"required_level\", \"levels\": [{\"level\", \"passed\", \"cases\": [{\"name\", \"codes\", \"passed\", \
\"differences\"}]}]}; on a terminal, text. Exit code 0 if the required level is reached, otherwise 1.

Examples:
  cog conformance --level 2
  cog conformance --level 2 --format json | jq .level
  cog conformance --write-modules modules")]
pub(crate) struct ConformanceArgs {
    /// Runtime to check: the URL before /v1 [default: this program]
    #[arg(long, value_name = "URL", conflicts_with = "write_modules")]
    pub(crate) url: Option<String>,
    /// Level that must be reached [default: the level that the capabilities claim]
    #[arg(long, value_name = "LEVEL", value_parser = value_parser!(u8).range(1..=4))]
    pub(crate) level: Option<u8>,
    /// Port of the model that the runtime at --url calls
    #[arg(long, value_name = "PORT", default_value_t = 9797, value_parser = value_parser!(u16).range(1..))]
    pub(crate) mock_port: u16,
    /// Write the modules of the cases to this directory, and show how to check another runtime
    #[arg(long, value_name = "DIR")]
    pub(crate) write_modules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}
