//! Writes modules in the formats of other programs (docs/export.md).
//!
//! * [`skill`] is an Agent Skill, and [`claude_code`] one for Claude Code;
//! * [`agent_card`] is a card of A2A, [`server_json`] an entry of the MCP registry, and [`promptfoo`] a configuration
//!   of promptfoo;
//! * [`input_schema`] and [`envelope_schema`] describe the input and the answer to other programs.

mod promptfoo;
pub(crate) mod skill;
pub(crate) mod yaml;

use std::path::PathBuf;

use cog_json::ToJson as _;
use cog_spec::{Code, Dialect, Modality};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{Module, files::FileError, golden};

pub use self::{
    promptfoo::{Promptfoo, promptfoo},
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

// Modules as a card of A2A 1.0.

/// The interface of a `cog serve`, as a protocol binding. It is not one of A2A's own: a client finds out that it needs
/// another.
const BINDING: &str = "urn:cognitive-modules:binding:http:v1";
/// The extension with the schemas of the skills.
const SCHEMAS: &str = "urn:cognitive-modules:extension:schemas:v1";
/// The maximum number of examples of a skill.
const MAX_EXAMPLES: usize = 2;
/// The maximum length of an example, in bytes.
const MAX_EXAMPLE: usize = 2048;

/// The server of a card.
#[derive(Debug, Clone)]
pub struct CardServer<'a> {
    /// Its URL, without a slash at its end.
    pub url: &'a str,
    /// Whether its clients send a token.
    pub has_tokens: bool,
}

/// Returns the card of one module, or of all modules of a server. Modules that agents may not call are left out.
pub fn agent_card(modules: &[&Module], server: &CardServer<'_>) -> Value {
    let modules: Vec<&Module> =
        modules.iter().copied().filter(|module| module.manifest.invocation.agent_invocable).collect();
    let (name, description, version, path) = match modules.as_slice() {
        [module] => {
            let manifest = &module.manifest;
            let path = format!("/v1/modules/{}/execute", manifest.name);
            (manifest.name.as_str(), manifest.responsibility.as_str(), manifest.version.as_str(), path)
        }
        _ => ("cog", SEVERAL, env!("CARGO_PKG_VERSION"), "/v1/modules".to_owned()),
    };
    let schemas: serde_json::Map<String, Value> = modules.iter().map(|module| schemas(module)).collect();
    let mut card = json!({
        "name": name,
        "description": description,
        "version": version,
        "supportedInterfaces": [{
            "url": format!("{}{path}", server.url),
            "protocolBinding": BINDING,
            "protocolVersion": "1.0",
        }],
        "capabilities": {
            "streaming": false,
            "pushNotifications": false,
            "extendedAgentCard": false,
            "extensions": [{
                "uri": SCHEMAS,
                "description": "The JSON Schemas, 2020-12, of the input and the data of each skill.",
                "required": false,
                "params": { "skills": schemas },
            }],
        },
        "defaultInputModes": [JSON],
        "defaultOutputModes": [JSON],
        "skills": modules.iter().map(|module| card_skill(module)).collect::<Vec<_>>(),
    });
    if let Some(card) = card.as_object_mut().filter(|_| server.has_tokens) {
        let scheme = json!({ "token": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } });
        card.insert("securitySchemes".to_owned(), scheme);
        card.insert("securityRequirements".to_owned(), json!([{ "schemes": { "token": { "list": [] } } }]));
    }
    card
}

const JSON: &str = "application/json";
const SEVERAL: &str =
    "Runs Cognitive Modules: each answer is JSON that is checked against the schema of its module.";

fn schemas(module: &Module) -> (String, Value) {
    let schemas = json!({ "input": input_schema(module), "data": data_schema(module) });
    (module.manifest.name.clone(), schemas)
}

fn card_skill(module: &Module) -> Value {
    let manifest = &module.manifest;
    let mut description = manifest.responsibility.clone();
    if !manifest.excludes.is_empty() {
        description.push_str(&format!("\nExcludes: {}.", manifest.excludes.join("; ")));
    }
    let mut tags = vec!["cognitive-module"];
    tags.extend(manifest.tier.map(|tier| tier.as_str()));
    json!({
        "id": manifest.name,
        "name": manifest.name,
        "description": description,
        "tags": tags,
        "examples": examples(module),
        "inputModes": modes(&manifest.modalities.input, Modality::media_types),
        "outputModes": modes(&manifest.modalities.output, Modality::output_types),
    })
}

/// Returns the first inputs of golden tests that are short.
fn examples(module: &Module) -> Vec<String> {
    let inputs = golden::discover(module).cases.into_iter().map(|case| case.input.to_json());
    inputs.filter(|input| input.len() <= MAX_EXAMPLE).take(MAX_EXAMPLES).collect()
}

/// Returns the media types: an input or an answer is JSON, which contains or names the media.
fn modes(modalities: &[Modality], types: fn(Modality) -> &'static [&'static str]) -> Vec<&'static str> {
    std::iter::once(JSON).chain(modalities.iter().flat_map(|modality| types(*modality)).copied()).collect()
}

// A module as `server.json`, an entry of the MCP registry.

/// The schema of an entry.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The maximum length of the title and of the description, in characters.
const MAX_TEXT: usize = 100;
/// The maximum length of the name, in characters.
const MAX_NAME: usize = 200;

/// What an entry says in addition to the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryEntry<'a> {
    /// The namespace of the publisher in reverse-DNS form, such as `io.github.your-name`.
    pub namespace: &'a str,
    /// A container image whose entry point is `cog`, and which has the module in its working directory.
    pub image: Option<&'a str>,
    /// The URL of a `cog serve`, without a slash at its end.
    pub url: Option<&'a str>,
}

/// Returns the entry of a server with this module as a tool.
///
/// Without an image and a URL it says only what the server is: clients cannot start it yet.
///
/// # Errors
/// If agents may not call the module, or the namespace or the image is invalid.
pub fn server_json(module: &Module, entry: &RegistryEntry<'_>) -> Result<Value, ExportError> {
    let manifest = &module.manifest;
    if !manifest.invocation.agent_invocable {
        return Err(ExportError::NotForAgents { name: manifest.name.clone() });
    }
    let name = format!("{}/{}", entry.namespace, manifest.name);
    if !is_namespace(entry.namespace) || name.len() > MAX_NAME {
        return Err(ExportError::Namespace { namespace: entry.namespace.to_owned() });
    }
    let mut server = Map::new();
    server.insert("$schema".to_owned(), SCHEMA.into());
    server.insert("name".to_owned(), name.into());
    server.insert("title".to_owned(), shortened(&manifest.name).into());
    server.insert("description".to_owned(), shortened(&manifest.responsibility).into());
    server.insert("version".to_owned(), manifest.version.as_str().into());
    if let Some(image) = entry.image {
        server.insert("packages".to_owned(), json!([package(image)?]));
    }
    if let Some(url) = entry.url {
        let remote = json!({ "type": "streamable-http", "url": format!("{url}/mcp") });
        server.insert("remotes".to_owned(), json!([remote]));
    }
    Ok(Value::Object(server))
}

/// Returns the package that runs `cog mcp serve` in a container.
fn package(image: &str) -> Result<Value, ExportError> {
    if !names_a_version(image) {
        return Err(ExportError::Image { image: image.to_owned() });
    }
    Ok(json!({
        "registryType": "oci",
        "identifier": image,
        "runtimeHint": "docker",
        "transport": { "type": "stdio" },
        "packageArguments": [
            { "type": "positional", "value": "mcp" },
            { "type": "positional", "value": "serve" },
        ],
        "environmentVariables": [{
            "name": "OPENAI_API_KEY",
            "description": "The key of the provider. Other providers have variables of their own: `cog doctor` lists them.",
            "isSecret": true,
        }],
    }))
}

/// Returns whether an image has a tag other than `latest`, or a digest.
fn names_a_version(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    let version = last.split_once('@').or_else(|| last.split_once(':'));
    image.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@".contains(c))
        && version
            .is_some_and(|(name, version)| !name.is_empty() && !version.is_empty() && version != "latest")
}

/// Returns whether this is several labels of a domain name.
fn is_namespace(text: &str) -> bool {
    text.contains('.') && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some(_) => text.chars().take(MAX_TEXT - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
