//! The OpenAPI document: the routes as their handlers describe them, with the schemas of their bodies.

mod answers;
mod module;
mod params;
mod schemas;

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

pub use self::module::module_openapi;
pub(crate) use self::{
    answers::{Chunks, Executed, Refused, RunFailed},
    params::{ModeHeader, RecoveryHeaders},
};

/// The description of the document.
const DESCRIPTION: &str = "Runs Cognitive Modules. The answer of a language model is one validated envelope, or a stream \
    of chunks that are validated as they arrive. A failed request returns an envelope too: `error.code` and \
    `error.message` describe the problem, `error.suggestion` a solution.";

/// Returns the OpenAPI 3.1 document of these routes, as JSON with a newline at the end.
pub(crate) fn document_text(routes: OpenApi) -> String {
    text(&document(routes))
}

/// Adds schemas, security and general information to the document of the routes.
fn document(routes: OpenApi) -> Value {
    let mut document = members(serde_json::to_value(routes).unwrap_or_default());
    let mut set = |key: &str, value| document.insert(key.to_owned(), value);
    set("info", info());
    set("servers", json!([{ "url": "/" }]));
    set("components", json!({ "schemas": schemas::all(), "securitySchemes": { "token": token() } }));
    // A server on loopback needs no token.
    set("security", json!([{ "token": [] }, {}]));
    require_bodies(&mut document);
    document.into()
}

/// Marks every request body as required.
fn require_bodies(document: &mut Map<String, Value>) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    let operations = paths.filter_map(|(_, operations)| operations.as_object_mut()).flatten();
    let bodies = operations.filter_map(|(_, operation)| operation.get_mut("requestBody")?.as_object_mut());
    bodies.for_each(|body| {
        body.insert("required".to_owned(), true.into());
    });
}

fn info() -> Value {
    json!({
        "title": "cog",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    })
}

fn token() -> Value {
    json!({
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the operator's `--token-file`. A browser's WebSocket sends it as the subprotocol \
            `cog.token.TOKEN`, together with `cog`."
    })
}

fn text(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the members of a JSON object; none for any other value.
fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
