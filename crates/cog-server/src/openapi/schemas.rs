//! The schemas of the document: those of the specification, and those of the HTTP interface alone.

use cog_spec::Schema;
use serde_json::{Map, Value};

use super::members;

/// The schemas of the HTTP interface, as they stand in the document.
const HTTP: &str = include_str!("../../schemas/http.json");
/// The documents of the specification that travel over HTTP. Each may use what an earlier one defines.
const SPECIFIED: [Schema; 3] = [Schema::Envelope, Schema::Chunk, Schema::Capabilities];

/// All schemas, by name.
pub(super) fn all() -> Map<String, Value> {
    let mut all = Map::new();
    let mut shared = Map::new();
    for schema in SPECIFIED {
        specified(schema, &mut shared, &mut all);
    }
    all.extend(members(serde_json::from_str(HTTP).unwrap_or_default()));
    all
}

/// Adds a document of the specification, and what it defines. A definition that differs from an earlier one of the
/// same name bears the name of its document before its own.
fn specified(schema: Schema, shared: &mut Map<String, Value>, all: &mut Map<String, Value>) {
    let mut document = members(serde_json::from_str(schema.text()).unwrap_or_default());
    document.remove("$schema");
    let title = capital(schema.as_str());
    let definitions = members(document.remove("definitions").unwrap_or_default());
    let name = |key: &str, shared: &Map<String, Value>| match shared.get(key) == definitions.get(key) {
        true => capital(key),
        false => format!("{title}{}", capital(key)),
    };
    for (key, definition) in &definitions {
        shared.entry(key).or_insert_with(|| definition.clone());
    }
    for (key, definition) in &definitions {
        all.insert(name(key, shared), referring(definition.clone(), &|key| name(key, shared)));
    }
    all.insert(title.clone(), referring(Value::Object(document), &|key| name(key, shared)));
}

/// The schema, with its references to definitions leading to the document's.
fn referring(schema: Value, name: &impl Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| reference(key, value, name)).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| referring(item, name)).collect(),
        other => other,
    }
}

fn reference(key: String, value: Value, name: &impl Fn(&str) -> String) -> (String, Value) {
    let target = value.as_str().filter(|_| key == "$ref").and_then(|it| it.strip_prefix("#/definitions/"));
    let target = target.map(|target| Value::from(format!("#/components/schemas/{}", name(target))));
    let value = target.unwrap_or_else(|| referring(value, name));
    (key, value)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
