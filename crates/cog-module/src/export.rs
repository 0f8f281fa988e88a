//! Writes modules in the formats of other programs (docs/export.md).
//!
//! * [`skill`] is an Agent Skill, and [`claude_code`] one for Claude Code;
//! * [`agent_card`] is a card of A2A, [`server_json`] an entry of the MCP registry, and [`promptfoo`] a configuration of promptfoo;
//! * [`input_schema`] and [`envelope_schema`] describe the input and the answer to other programs.

mod agent_card;
mod claude_code;
mod error;
mod expectations;
mod promptfoo;
mod schemas;
mod server_json;
pub(crate) mod skill;
pub(crate) mod yaml;

use serde_json::{Map, Value};

pub use self::{
    agent_card::{CardServer, agent_card},
    claude_code::claude_code,
    error::ExportError,
    promptfoo::{Promptfoo, promptfoo},
    schemas::{data_schema, envelope_schema, input_schema},
    server_json::{RegistryEntry, server_json},
    skill::skill,
};

/// A skill: its front matter, and its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name, which is also that of its directory.
    pub name: String,
    /// The front matter of `SKILL.md`.
    pub front_matter: Map<String, Value>,
    /// Its files. The first is `SKILL.md`.
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the directory of the skill, with `/` between its parts.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl SkillFile {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

#[cfg(test)]
mod tests;
