//! Arguments of `graph`.

use clap::{Args, ValueEnum};

/// `cog graph`.
#[derive(Debug, Args)]
#[command(after_help = "\
Draws the modules that a composition calls, with the types of the values that they pass. Exit code 3 if the composition \
has errors, which are printed to stderr; the part that can be read is still drawn.

Examples:
  cog graph review-pipeline
  cog graph review-pipeline --format mermaid >> README.md
  cog graph review-pipeline --format svg > pipeline.svg
  cog graph review-pipeline --format json | jq '.edges[] | [.from, .to]'")]
pub(crate) struct GraphArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: GraphFormat,
}

/// The format of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// One edge per line
    Text,
    /// Mermaid flowchart, for Markdown
    Mermaid,
    /// Graphviz DOT
    Dot,
    /// SVG image
    Svg,
    /// JSON
    Json,
}
