//! Writes modules in the formats of other programs (docs/export.md).
//!
//! * [`skill`] is an Agent Skill, and [`claude_code`] one for Claude Code;
//! * [`agent_card`] is a card of A2A, [`server_json`] an entry of the MCP registry, and [`promptfoo`] a configuration
//!   of promptfoo;
//! * [`input_schema`] and [`envelope_schema`] describe the input and the answer to other programs.

mod agent_card;
mod promptfoo;
mod server_json;
pub(crate) mod skill;
pub(crate) mod yaml;

use std::path::PathBuf;

use cog_spec::{Code, Dialect};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{Module, files::FileError};

pub use self::{
    agent_card::{CardServer, agent_card},
    promptfoo::{Promptfoo, promptfoo},
    server_json::{RegistryEntry, server_json},
    skill::{claude_code, skill},
};

/// A skill: its front matter, and its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name, which is also the name of its directory.
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

/// Why a module was not exported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The name of the module is not allowed for a skill.
    #[error("`{name}` is not a valid name of a skill: {reason}")]
    SkillName {
        /// The name.
        name: String,
        /// The rule that it violates.
        reason: &'static str,
        /// A similar name that is allowed.
        similar: Option<String>,
    },
    /// The manifest does not allow calls from agents.
    #[error("agents may not call `{name}`: its manifest has `agent_invocable: false`")]
    NotForAgents {
        /// The module.
        name: String,
    },
    /// The namespace of a registry entry is invalid.
    #[error("`{namespace}` is not a namespace in reverse-DNS form")]
    Namespace {
        /// The namespace.
        namespace: String,
    },
    /// The container image of a registry entry is invalid.
    #[error("`{image}` does not name one version of a container image")]
    Image {
        /// The image.
        image: String,
    },
    /// A path cannot be written into a command.
    #[error("the path `{path}` contains a quote, `$`, a backslash or a control character")]
    Path {
        /// The path.
        path: String,
    },
    /// A file of the module could not be read.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ExportError {
    /// Returns the code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::SkillName { .. } | Self::Namespace { .. } | Self::Image { .. } | Self::Path { .. } => {
                Code::UnsupportedValue
            }
            Self::NotForAgents { .. } => Code::PermissionDenied,
            Self::File { .. } => Code::InvalidReference,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        Some(match self {
            Self::SkillName { name, similar, .. } => {
                let similar = similar.as_deref().unwrap_or("my-skill");
                format!("Copy the module under another name: `cog new {similar} --from {name}`.")
            }
            Self::NotForAgents { .. } => {
                "Export it as `claude-code`, where only a person calls it, or change `invocation` in the manifest."
                    .to_owned()
            }
            Self::Namespace { .. } => {
                "Use a domain or an account of yours, such as `com.example` or `io.github.your-name`.".to_owned()
            }
            Self::Image { .. } => {
                "Write `REGISTRY/NAME:TAG`, with a tag other than `latest`, or `REGISTRY/NAME@sha256:DIGEST`.".to_owned()
            }
            Self::Path { .. } => "Move the module to a path without these characters.".to_owned(),
            Self::File { error, .. } => error.suggestion().to_owned(),
        })
    }
}

// The schemas of a module for other programs: JSON Schema 2020-12.

/// Returns the schema of the input, an object.
pub fn input_schema(module: &Module) -> Map<String, Value> {
    let projected = module.contract.project_input(Dialect::JsonSchema).schema;
    let mut schema = members(projected.unwrap_or_default());
    schema.insert("type".to_owned(), Value::from("object"));
    schema
}

/// Returns the schema of the envelope with the data of the module.
pub fn envelope_schema(module: &Module) -> Map<String, Value> {
    let (data, definitions) = data(module);
    let text = json!({ "type": "string" });
    let mut schema = members(json!({
        "type": "object",
        "required": ["ok", "meta"],
        "properties": {
            "ok": { "type": "boolean", "description": "Whether the run succeeded: then there is `data`, otherwise `error`." },
            "meta": {
                "type": "object",
                "required": ["confidence", "risk", "explain"],
                "properties": {
                    "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                    "risk": { "description": "none, low, medium or high" },
                    "explain": text,
                },
            },
            "data": data,
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": { "code": text, "message": text, "suggestion": text },
            },
        },
    }));
    if let Some(definitions) = definitions {
        schema.insert("$defs".to_owned(), definitions);
    }
    schema
}

/// Returns the schema of the data.
pub fn data_schema(module: &Module) -> Value {
    let (mut data, definitions) = data(module);
    if let Some(definitions) = definitions
        && let Some(members) = data.as_object_mut()
    {
        members.insert("$defs".to_owned(), definitions);
    }
    data
}

/// Returns the schema of the data, and the definitions that it refers to.
fn data(module: &Module) -> (Value, Option<Value>) {
    let mut projected = module.contract.project(Dialect::JsonSchema).schema.unwrap_or_default();
    let definitions = projected.as_object_mut().and_then(|root| root.shift_remove("$defs"));
    let mut data = match projected.pointer_mut("/anyOf/0/properties/data") {
        Some(data) => data.take(),
        // The older formats have no envelope.
        None => projected,
    };
    loosen(&mut data, module.contract.data_schema());
    (data, definitions)
}

/// Removes what the specification requires only of a model: the rationale and insights, which the answer of a
/// composition may lack.
fn loosen(data: &mut Value, own: Option<&Value>) {
    let own_required = own.and_then(|own| own.get("required")).and_then(Value::as_array);
    if let Some(required) = data.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| own_required.is_some_and(|own| own.contains(name)));
    }
    let has_own = own.is_some_and(|own| own.pointer("/properties/extensions").is_some());
    if let Some(extensions) = data.pointer_mut("/properties/extensions").filter(|_| !has_own) {
        *extensions = json!({ "type": "object" });
    }
}

fn members(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
