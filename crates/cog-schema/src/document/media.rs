//! The runtime's definitions of media: of an input, the four sources of docs/spec/media.md (ruling R14), and of an output
//! (SPEC 2.3).

use serde_json::{Map, Value, json};

const NAME: &str = "MediaInput";
const OUTPUT: &str = "MediaOutput";

/// Adds the definitions where the document refers to them and has none.
pub(super) fn define(document: &mut Value) {
    define_one(document, NAME, || definition(false));
    define_one(document, OUTPUT, output);
}

fn define_one(document: &mut Value, name: &str, definition: impl Fn() -> Value) {
    for keyword in ["$defs", "definitions"] {
        let pointer = format!("/{keyword}/{name}");
        if document.pointer(&pointer).is_none() && mentions(document, &format!("#{pointer}")) {
            let Some(members) = document.as_object_mut() else { return };
            let definitions = members.entry(keyword).or_insert_with(|| Value::Object(Map::new()));
            if let Some(definitions) = definitions.as_object_mut() {
                definitions.insert(name.to_owned(), definition());
            }
        }
    }
}

/// Puts the runtime's definition in the place of each that is found by name or by shape, and reports where.
pub(super) fn replace(document: &mut Value, schemas: &[String], documents: bool) -> Vec<String> {
    let is_named =
        |pointer: &str| [format!("/$defs/{NAME}"), format!("/definitions/{NAME}")].contains(&pointer.into());
    let mut replaced = Vec::new();
    for pointer in schemas {
        let Some(schema) = document.pointer_mut(pointer) else { continue };
        if is_named(pointer) || has_shape(schema) {
            let mut new = definition(documents);
            keep_words(schema, &mut new);
            *schema = new;
            replaced.push(pointer.clone());
        }
    }
    replaced
}

/// A choice between sources by a constant `type`, with all three of the specification among them (SPEC 2.3).
fn has_shape(schema: &Value) -> bool {
    let Some(branches) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) else {
        return false;
    };
    let types: Vec<&str> =
        branches.iter().filter_map(|branch| branch.pointer("/properties/type/const")?.as_str()).collect();
    ["url", "base64", "file"].iter().all(|source| types.contains(source))
}

fn keep_words(old: &Value, new: &mut Value) {
    for keyword in ["title", "description"] {
        if let (Some(words), Some(members)) = (old.get(keyword), new.as_object_mut()) {
            members.insert(keyword.to_owned(), words.clone());
        }
    }
}

fn mentions(value: &Value, reference: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.get("$ref").and_then(Value::as_str) == Some(reference)
                || members.values().any(|member| mentions(member, reference))
        }
        Value::Array(items) => items.iter().any(|item| mentions(item, reference)),
        _ => false,
    }
}

fn definition(documents: bool) -> Value {
    let kinds = if documents {
        "^((image|audio|video)/[a-z0-9.+-]+|application/pdf)$"
    } else {
        "^(image|audio|video)/[a-z0-9.+-]+$"
    };
    let text = json!({ "type": "string" });
    let url = json!({ "type": "string", "format": "uri" });
    let media_type = json!({ "type": "string", "pattern": kinds });
    let branches = [
        source("url", &[("url", &url)], &[("media_type", &text)]),
        source("base64", &[("media_type", &media_type), ("data", &text)], &[]),
        source("file", &[("path", &text)], &[("media_type", &text)]),
        source("upload_ref", &[("upload_id", &text)], &[("media_type", &text)]),
    ];
    json!({ "type": "object", "required": ["type"], "oneOf": branches })
}

/// SPEC 2.3, with what 4.3 adds.
fn output() -> Value {
    json!({
        "type": "object",
        "required": ["type", "media_type"],
        "properties": {
            "type": { "type": "string", "enum": ["url", "base64", "file"] },
            "media_type": { "type": "string", "pattern": "^(image|audio|video)/[a-z0-9.+-]+$" },
            "url": { "type": "string", "format": "uri" },
            "data": { "type": "string" },
            "path": { "type": "string" },
            "width": { "type": "integer" },
            "height": { "type": "integer" },
            "duration_ms": { "type": "integer" },
            "expires_at": { "type": "string" },
            "generation_params": { "type": "object" },
        },
    })
}

/// One branch: an object of this `type`, with the fields it needs and those it may have.
fn source(name: &str, needed: &[(&str, &Value)], possible: &[(&str, &Value)]) -> Value {
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
    for (key, schema) in needed.iter().chain(possible).chain(&[("checksum", &checksum())]) {
        properties.insert((*key).to_owned(), (*schema).clone());
    }
    let required: Vec<&str> = ["type"].into_iter().chain(needed.iter().map(|(key, _)| *key)).collect();
    json!({ "properties": properties, "required": required })
}

fn checksum() -> Value {
    json!({
        "type": "object",
        "required": ["algorithm", "value"],
        "properties": {
            "algorithm": { "enum": ["sha256", "md5", "crc32"] },
            "value": { "type": "string" },
        },
    })
}
