//! Modules as a card of A2A 1.0.

use cog_json::ToJson as _;
use cog_spec::Modality;
use serde_json::{Value, json};

use super::{data_schema, input_schema};
use crate::{Module, golden};

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
        "skills": modules.iter().map(|module| skill(module)).collect::<Vec<_>>(),
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

fn skill(module: &Module) -> Value {
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
