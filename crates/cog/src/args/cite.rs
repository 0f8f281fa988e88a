//! Arguments of `cite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListFormat;

/// `cog cite`.
#[derive(Debug, Args)]
pub(crate) struct CiteArgs {
    #[command(subcommand)]
    pub(crate) command: CiteCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CiteCommand {
    /// Check the citations of an answer, and their snippets against the sources
    Check(CiteCheckArgs),
}

/// `cog cite check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each anchor `<cite id=\"…\"/>` must be in `citation_map`, and each citation must be used. If its source is given, \
the snippet of a citation must be on the cited page. A box must be within that page, and a time within the \
recording. Snippets are compared after Unicode normalization, without line breaks and hyphenation.

Prints {\"valid\", \"anchors\", \"citations\", \"findings\": [{\"path\", \"rule\", \"message\"}]}; on a terminal, text. \
Exit code 0 if valid, otherwise 1.

Examples:
  cog run my-module question.json | cog cite check -
  cog cite check answer.json --source doc_fin_report_2023=report.pdf
  cog cite check answer.json --source notes=notes.txt --min-score 0.9 --format json | jq .citations")]
pub(crate) struct CiteCheckArgs {
    /// Envelope, data, message or list of messages: a JSON file, or `-` for stdin
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: PathBuf,
    /// Source of the citations with this `source_id` or URL: a file (text, PDF, image, audio or video) or an http(s) URL
    #[arg(long, value_name = "ID=FILE", value_parser = source)]
    pub(crate) source: Vec<CiteSource>,
    /// Minimum share of a snippet that must appear in its source, from 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "1", value_parser = score)]
    pub(crate) min_score: f64,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// The value of `--source`.
#[derive(Debug, Clone)]
pub(crate) struct CiteSource {
    /// The identifier of the source.
    pub(crate) id: String,
    /// A file or a URL.
    pub(crate) file: String,
}

/// Splits at the last `=` before a file: an identifier may be a URL with a query.
fn source(text: &str) -> Result<CiteSource, &'static str> {
    match text.rsplit_once('=') {
        Some((id, file)) if !id.is_empty() && !file.is_empty() => {
            Ok(CiteSource { id: id.to_owned(), file: file.to_owned() })
        }
        _ => Err("write ID=FILE, such as report=report.pdf"),
    }
}

fn score(text: &str) -> Result<f64, &'static str> {
    let score = text.parse().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or("a score is a number from 0 to 1")
}
