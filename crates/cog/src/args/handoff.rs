//! Arguments of `handoff` and `cite`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ListFormat, OutputArgs};

/// `cog handoff`.
#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
    #[command(subcommand)]
    pub(crate) command: HandoffCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum HandoffCommand {
    /// Create a packet, and list what it loses
    New(Box<HandoffNewArgs>),
    /// Check a packet, its artifacts and its chain
    Check(HandoffCheckArgs),
    /// Print a packet as messages for the receiving agent
    Apply(HandoffApplyArgs),
    /// Show a packet
    Show(HandoffShowArgs),
}

/// `cog handoff new`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --parent, the packet continues a chain. It keeps the parent's objective, which cannot be changed, and includes its \
steps, constraints, artifacts and summary. With --answer, these come from `data.handoff` in an answer.

Losses are listed on stderr: messages in --history that no summary covers, tool calls without a result, media that are \
not among the artifacts, and missing constraints and artifacts of the parent. With --strict, a packet with losses is not \
created.

Examples:
  cog handoff new --from planner --to coder --objective \"Build a game\" -o p1.json
  cog handoff new --parent p1.json --to tester --done \"game loop\" --next \"test it\" -o p2.json
  cog handoff new --answer plan.json --from planner --to coder -o p1.json")]
pub(crate) struct HandoffNewArgs {
    /// Agent that hands over [default: the receiver of --parent]
    #[arg(long, value_name = "AGENT", required_unless_present = "parent")]
    pub(crate) from: Option<String>,
    /// Agent that takes over
    #[arg(long, value_name = "AGENT")]
    pub(crate) to: String,
    /// The task, which stays the same along a chain
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["parent", "answer"])]
    pub(crate) objective: Option<String>,
    /// Packet that the sender received: a file or http(s) URL
    #[arg(long, value_name = "PACKET")]
    pub(crate) parent: Option<String>,
    /// Envelope or data with a `handoff` member: a JSON file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,
    /// Progress of the task, such as `in_progress`
    #[arg(long, value_name = "TEXT")]
    pub(crate) status: Option<String>,
    /// Completed step
    #[arg(long, value_name = "TEXT")]
    pub(crate) done: Vec<String>,
    /// Next step
    #[arg(long, value_name = "TEXT")]
    pub(crate) next: Option<String>,
    /// Constraint that the receiver must obey
    #[arg(long, value_name = "TEXT")]
    pub(crate) constraint: Vec<String>,
    /// Shared artifact: a path or a URL
    #[arg(long, value_name = "NAME=REFERENCE", value_parser = artifact)]
    pub(crate) artifact: Vec<(String, String)>,
    /// Summary of the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// The sender's messages, to list what the packet loses
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// Fail if the packet has losses
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn artifact(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, reference)) if !name.is_empty() && !reference.is_empty() => {
            Ok((name.to_owned(), reference.to_owned()))
        }
        _ => Err("write NAME=REFERENCE, such as design_doc=spec.md"),
    }
}

/// `cog handoff check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Checks the packet's form and hashes. Artifacts must exist: files in the working directory or under \
`media.roots`, and URLs that a run may fetch. References with other schemes are not resolved; --strict refuses them.

With --chain, verifies the chain from its end: each packet must follow its parent, with the same objective and at least \
the same constraints.

Prints {\"valid\", \"packets\", \"findings\": [{\"path\", \"rule\", \"message\"}]}; on a terminal, text. Exit code 0 if \
valid, otherwise 1.

Examples:
  cog handoff check p2.json --chain p1.json
  cog handoff check - --no-fetch --strict < p1.json")]
pub(crate) struct HandoffCheckArgs {
    /// Packet: a file, an http(s) URL, or `-` for stdin
    #[arg(value_name = "PACKET")]
    pub(crate) packet: String,
    /// Earlier packet of the chain: a file or http(s) URL
    #[arg(long, value_name = "PACKET")]
    pub(crate) chain: Vec<String>,
    /// Check only the form of artifact URLs
    #[arg(long)]
    pub(crate) no_fetch: bool,
    /// Refuse packets without hashes, and artifacts that cannot be resolved
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog handoff apply`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a list of Harmony messages that contains the complete packet. Refuses a packet that is invalid or was changed, and, \
with --as, a packet for another agent.

Examples:
  cog handoff apply p1.json --as coder")]
pub(crate) struct HandoffApplyArgs {
    /// Packet: a file, an http(s) URL, or `-` for stdin
    #[arg(value_name = "PACKET")]
    pub(crate) packet: String,
    /// Name of the receiving agent
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `cog handoff show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog handoff show p1.json")]
pub(crate) struct HandoffShowArgs {
    /// Packet: a file, an http(s) URL, or `-` for stdin
    #[arg(value_name = "PACKET")]
    pub(crate) packet: String,
}

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
