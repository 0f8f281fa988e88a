//! The schemas of the document: those of the specification, and those of the HTTP interface.

use cog_spec::Schema;
use serde_json::{Map, Value};

use super::members;

/// The schemas of the HTTP interface.
const HTTP: &str = include_str!("../../schemas/http.json");
/// The schemas of the specification that HTTP uses. Each may use the definitions of an earlier one.
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

/// Adds a schema and its definitions. A definition that differs from an earlier one of the same name gets the name of its
/// schema as a prefix.
fn specified(schema: Schema, shared: &mut Map<String, Value>, all: &mut Map<String, Value>) {
    let mut document = members(serde_json::from_str(schema.text()).unwrap_or_default());
    document.remove("$schema");
    let title = capitalized(schema.as_str());
    let definitions = members(document.remove("definitions").unwrap_or_default());
    let name = |key: &str, shared: &Map<String, Value>| match shared.get(key) == definitions.get(key) {
        true => capitalized(key),
        false => format!("{title}{}", capitalized(key)),
    };
    for (key, definition) in &definitions {
        shared.entry(key).or_insert_with(|| definition.clone());
    }
    for (key, definition) in &definitions {
        all.insert(name(key, shared), with_references(definition.clone(), &|key| name(key, shared)));
    }
    all.insert(title.clone(), with_references(Value::Object(document), &|key| name(key, shared)));
}

/// Returns the schema with its references pointing to the document.
fn with_references(schema: Value, name: &impl Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| reference(key, value, name)).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| with_references(item, name)).collect(),
        other => other,
    }
}

fn reference(key: String, value: Value, name: &impl Fn(&str) -> String) -> (String, Value) {
    let target = value.as_str().filter(|_| key == "$ref").and_then(|it| it.strip_prefix("#/definitions/"));
    let target = target.map(|target| Value::from(format!("#/components/schemas/{}", name(target))));
    let value = target.unwrap_or_else(|| with_references(value, name));
    (key, value)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
