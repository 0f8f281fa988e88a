//! A module as `server.json`, an entry of the MCP registry.

use serde_json::{Map, Value, json};

use super::ExportError;
use crate::Module;

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
mod tests {
    use super::*;

    #[test]
    fn images_name_one_version() {
        for image in ["ghcr.io/me/reviewer:1.0.0", "localhost:5000/reviewer:1", "reviewer@sha256:abc"] {
            assert!(names_a_version(image), "{image}");
        }
        for image in
            ["", "reviewer", "reviewer:", "reviewer:latest", ":1", "localhost:5000/reviewer", "a b:1"]
        {
            assert!(!names_a_version(image), "{image}");
        }
    }

    #[test]
    fn namespaces_are_domain_names() {
        for namespace in ["io.github.me", "com.example", "a.b-c"] {
            assert!(is_namespace(namespace), "{namespace}");
        }
        for namespace in ["", "example", ".a", "a.", "a..b", "a/b", "a.-b", "a.b_c", "ä.b"] {
            assert!(!is_namespace(namespace), "{namespace}");
        }
    }
}
