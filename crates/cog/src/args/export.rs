//! Arguments of `export` and `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
  cog export code-reviewer --as promptfoo -o promptfooconfig.yaml")]
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
    /// Directory to create the module in [default: cognitive/modules if it exists, otherwise the working directory]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
