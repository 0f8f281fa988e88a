//! Arguments of `verify`, `list`, `info`, `validate`, `graph`, `types`, `new`, `migrate`, `export`, `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use cog_answer::verify::Kind;
use cog_harmony::PartSupport;
use cog_module::scaffold;
use cog_provider::vendors::VENDORS;
use cog_spec::Tier;

use super::{ListFormat, keyword};

/// `cog verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints {\"valid\", \"kind\", \"violations\": [{\"path\", \"rule\", \"message\"}]}; on a terminal, text. Exit code 0 if \
valid, otherwise 1. --module also checks the document against that module's schema, named checks and tier. Messages may also have \
\"warnings\", which do not make them invalid.

Examples:
  cog verify answer.json
  my-runtime code-reviewer | cog verify - --kind envelope --module code-reviewer
  curl -sN http://localhost:8000/run | cog verify - --kind stream
  cog verify history.json --kind messages --model mistral/mistral-large-latest")]
pub(crate) struct VerifyArgs {
    /// File to check, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Document type [default: detected]
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Kind::NAMES))]
    kind: Option<String>,
    /// Also check against this module's schema, checks and tier
    #[arg(long, value_name = "MODULE")]
    pub(crate) module: Option<String>,
    /// Input of the run, for the checks of the module that read it
    #[arg(long, value_name = "FILE", requires = "module")]
    pub(crate) input: Option<PathBuf>,
    /// Also check whether this model accepts the parts of messages
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = super::messages::parse_model, conflicts_with = "module")]
    pub(crate) model: Option<PartSupport>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

impl VerifyArgs {
    /// Returns the document type that was given.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.kind.as_deref().and_then(|word| word.parse().ok())
    }
}

/// `cog list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Searches ./cognitive/modules, ./.cognitive/modules, the directories in COGNITIVE_MODULES_PATH and \
~/.cognitive/modules, in this order, then the built-in modules.

Examples:
  cog list
  cog list --format json | jq -r '.[].name'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog info code-reviewer
  cog info ./my-module --format json | jq .input")]
pub(crate) struct InfoArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog portability`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each constraint is enforced by the provider during generation, described to the model in words, or enforced only when \
the answer is checked. The check enforces every constraint.

Examples:
  cog portability code-reviewer
  cog portability code-reviewer --provider llamacpp
  cog portability code-reviewer --format json | jq -c '.[] | [.provider, .in_words]'")]
pub(crate) struct PortabilityArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Show only this provider
    #[arg(short, long, value_name = "NAME", value_parser = PossibleValuesParser::new(VENDORS.iter().map(|vendor| vendor.name)))]
    pub(crate) provider: Option<String>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

/// `cog validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 if all modules are valid, even with warnings, otherwise 3. Without MODULE, checks the module in the \
working directory.

Examples:
  cog validate my-module
  cog validate --all --deny-warnings
  cog validate --all --format github
  cog validate --all --format sarif > cog.sarif
  cog validate --all --format json
  cog validate ./my-module --v22
  cog validate ./my-module --against main")]
pub(crate) struct ValidateArgs {
    /// Module names, or paths of their directories [default: the working directory]
    #[arg(value_name = "MODULE")]
    pub(crate) modules: Vec<String>,
    /// Every module in `cog list` that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Exit with 3 if there are warnings
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// How a broken example or golden test counts
    #[arg(long, value_name = "SEVERITY", default_value = "error", hide_default_value = true)]
    pub(crate) examples: ExamplesArg,
    #[command(flatten)]
    pub(crate) level: LevelArgs,
    /// Compare with this git revision: breaking changes need a new major version
    #[arg(long, value_name = "REV")]
    pub(crate) against: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human", hide_default_value = true)]
    pub(crate) format: ValidateFormat,
}

/// The severity of a broken example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExamplesArg {
    /// The module is invalid
    Error,
    /// The module is valid
    Warn,
}

/// The format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValidateFormat {
    /// Text
    Human,
    /// JSON
    Json,
    /// Annotations for GitHub Actions
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

/// The format that a module must have.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LevelArgs {
    /// Require a complete v2.2 module
    #[arg(long, conflicts_with = "v25")]
    pub(crate) v22: bool,
    /// Require a complete v2.5 module
    #[arg(long)]
    pub(crate) v25: bool,
}

/// `cog new`.
#[derive(Debug, Args)]
#[command(after_help = "\
A new module runs at once: without a key, its golden tests answer. On a terminal, `cog new` asks for the kind if none is \
given; otherwise it is `answer`.

Examples:
  cog new my-triage --kind classify
  cog new my-module --kind extract --tier exec
  cog new my-reviewer --from code-reviewer
  cog new my-module --in .")]
pub(crate) struct NewArgs {
    /// Module name: lower-case letters, digits, hyphens
    pub(crate) name: String,
    /// What the module does: `classify` a text, `extract` values from it, `generate` a text, or `answer` a question
    #[arg(long, value_name = "KIND", value_parser = keyword::<scaffold::Kind>(scaffold::Kind::NAMES), hide_possible_values = true)]
    pub(crate) kind: Option<scaffold::Kind>,
    /// Copy this module instead of a template
    #[arg(long, value_name = "MODULE", conflicts_with_all = ["kind", "tier"])]
    pub(crate) from: Option<String>,
    /// Tier: `exec` for automation, `decision` for judgements, `exploration` for ideas
    #[arg(long, value_name = "TIER", default_value = "decision", value_parser = PossibleValuesParser::new(Tier::NAMES))]
    pub(crate) tier: String,
    /// Directory to create the module in [default: cognitive/modules]
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// `cog migrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Migrating from v0, v1 or v2.1 to v2.2 adds the envelope and a tier; migrating from v2.2 to v2.5 adds the response \
mode. Preserves comments and key order, and keeps a backup of the old directory. Running the command again changes nothing.

Examples:
  cog migrate my-module --dry-run
  cog migrate my-module
  cog migrate --all --no-backup")]
pub(crate) struct MigrateArgs {
    /// Module names, or paths of their directories
    #[arg(value_name = "MODULE", required_unless_present = "all")]
    pub(crate) modules: Vec<String>,
    /// Every module in `cog list` that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Format to migrate to
    #[arg(long, value_name = "FORMAT", default_value = "v2.5", value_parser = ["v2.2", "v2.5"])]
    pub(crate) to: String,
    /// Print the changes as a diff without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not keep a backup of the old directory
    #[arg(long)]
    pub(crate) no_backup: bool,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

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

/// `cog types`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the types of the input, data, meta and error of modules, and a function for each module that runs it. The \
function uses the package `cognitive` in Python, the crate `cog-run` in Rust, and a `cog serve` in TypeScript (with `fetch`) \
and in Go (with net/http). With `arrow`, it prints the columns of a table of results.

Exit code 1 if --check finds that a file is out of date.

Examples:
  cog types code-reviewer --lang python -o code_reviewer.py
  cog types code-reviewer code-analyzer --lang typescript -o modules.ts
  cog types ./my-module --lang rust --types-only
  cog types --all --lang go -o modules.go
  cog types code-reviewer --lang arrow
  cog types code-reviewer --lang python -o code_reviewer.py --check
  cog types --stubs typings")]
pub(crate) struct TypesArgs {
    /// Module names, or paths of their directories [default: the working directory; with --stubs, every module]
    #[arg(value_name = "MODULE")]
    pub(crate) modules: Vec<String>,
    /// Every module in `cog list` that is not built in
    #[arg(long, conflicts_with = "modules")]
    pub(crate) all: bool,
    /// Language to print
    #[arg(long, short, value_name = "LANG", required_unless_present = "stubs")]
    pub(crate) lang: Option<Language>,
    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE", conflicts_with = "stubs")]
    pub(crate) output: Option<PathBuf>,
    /// Print only types, without functions
    #[arg(long, conflicts_with = "stubs")]
    pub(crate) types_only: bool,
    /// Write the stub of the Python package `cognitive.modules` to this directory, for type checkers and editors
    #[arg(long, value_name = "DIR", conflicts_with = "lang")]
    pub(crate) stubs: Option<PathBuf>,
    /// Compare with the file instead of writing it
    #[arg(long)]
    pub(crate) check: bool,
}

/// A language that types are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypedDicts, checked by mypy and pyright
    Python,
    /// Interfaces
    Typescript,
    /// Types with serde
    Rust,
    /// Structs with encoding/json
    Go,
    /// The columns of results in Parquet and Arrow
    Arrow,
    /// The columns as JSON
    ArrowJson,
}

/// `cog export`.
#[derive(Debug, Args)]
#[command(after_help = "\
`skill` and `claude-code` are directories. They are written to NAME and .claude/skills/NAME in the directory given with -o, \
by default the working directory. The other formats are one file, printed by default. Existing files are overwritten only \
with --force.

Examples:
  cog export code-reviewer --as skill
  cog export code-reviewer --as claude-code
  cog export code-reviewer --as agent-card --url https://cog.example -o agent-card.json
  cog export code-reviewer --as openapi -o openapi.json
  cog export code-reviewer --as mcp-server-json --namespace io.github.your-name -o server.json
  cog export code-reviewer --as promptfoo -o promptfooconfig.yaml
  cog export ./my-module --as gepa -o improve.py")]
pub(crate) struct ExportArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Format to write
    #[arg(long = "as", value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// File to write, or `-` for stdout; for a skill, the directory to write to
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file or skill
    #[arg(long)]
    pub(crate) force: bool,
    /// URL of the server that the document describes [default: http://127.0.0.1:8000, none for mcp-server-json]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Namespace of the publisher, for mcp-server-json
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Container image with the module, for mcp-server-json
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
}

/// A format of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Agent Skill, a directory
    Skill,
    /// Skill of Claude Code, a directory
    ClaudeCode,
    /// Card of A2A 1.0
    AgentCard,
    /// OpenAPI 3.1
    Openapi,
    /// server.json of the MCP registry
    McpServerJson,
    /// Configuration of promptfoo with the golden tests
    Promptfoo,
    /// Python program that improves the prompt with GEPA on the golden tests
    Gepa,
}

/// `cog import`.
#[derive(Debug, Args)]
#[command(after_help = "\
If the skill was written by `cog export`, it contains its module, which is restored. From any other skill, the name, the \
description and the instructions become a draft. Review it, and describe the answer under `data` in schema.json. Nothing \
outside the skill's directory is read, links are not followed, and nothing in the skill is executed.

Examples:
  cog import code-reviewer/SKILL.md -o cognitive/modules
  cog import .claude/skills/pdf-reader -o modules")]
pub(crate) struct ImportArgs {
    /// SKILL.md, or the directory that contains it
    #[arg(value_name = "SKILL")]
    pub(crate) skill: PathBuf,
    /// Directory to create the module in [default: cognitive/modules]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// The language server: an editor starts it.
#[cfg(feature = "lsp")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cog lsp  # in the settings of an editor; see docs/editors.md")]
pub(crate) struct LspArgs {
    /// Use stdin and stdout, which is the only way; editors pass this flag
    #[arg(long)]
    pub(crate) stdio: bool,
}
