//! The definitions of media: the four sources of an input (docs/spec/media.md, ruling R14), and an output (SPEC 2.3).

use serde_json::{Map, Value, json};

/// A media input.
pub(super) const INPUT: &str = "MediaInput";

/// A media output.
pub(super) const OUTPUT: &str = "MediaOutput";

/// Replaces each media input, found by name or by structure, with the definition of the runtime. Returns their pointers.
pub(super) fn replace(document: &mut Value, schemas: &[String], documents: bool) -> Vec<String> {
    let is_named = |pointer: &str| {
        [format!("/$defs/{INPUT}"), format!("/definitions/{INPUT}")].contains(&pointer.into())
    };
    let mut replaced = Vec::new();
    for pointer in schemas {
        let Some(schema) = document.pointer_mut(pointer) else { continue };
        if is_named(pointer) || has_structure(schema) {
            let mut new = input(documents);
            copy_annotations(schema, &mut new);
            *schema = new;
            replaced.push(pointer.clone());
        }
    }
    replaced
}

/// Returns whether a schema is a choice between sources by a constant `type`, with the three of SPEC 2.3 among them.
fn has_structure(schema: &Value) -> bool {
    let Some(branches) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) else {
        return false;
    };
    let types: Vec<&str> =
        branches.iter().filter_map(|branch| branch.pointer("/properties/type/const")?.as_str()).collect();
    ["url", "base64", "file"].iter().all(|source| types.contains(source))
}

fn copy_annotations(old: &Value, new: &mut Value) {
    for keyword in ["title", "description"] {
        if let (Some(text), Some(members)) = (old.get(keyword), new.as_object_mut()) {
            members.insert(keyword.to_owned(), text.clone());
        }
    }
}

/// Returns the definition of an input.
pub(super) fn input(documents: bool) -> Value {
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

/// Returns the definition of an output: SPEC 2.3 with the members of SPEC 4.3.
pub(super) fn output() -> Value {
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

/// Returns one branch: an object of this `type` with its required and optional fields.
fn source(name: &str, required: &[(&str, &Value)], optional: &[(&str, &Value)]) -> Value {
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
    for (key, schema) in required.iter().chain(optional).chain(&[("checksum", &checksum())]) {
        properties.insert((*key).to_owned(), (*schema).clone());
    }
    let required: Vec<&str> = ["type"].into_iter().chain(required.iter().map(|(key, _)| *key)).collect();
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
