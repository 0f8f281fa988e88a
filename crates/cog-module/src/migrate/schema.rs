//! Migrates `schema.json` to v2.2: renames `output` to `data`, and adds `meta` and `error`.

use cog_json::{Node, Value};

use super::{Draft, MigrateError};
use crate::{
    Diagnostic, LoadError, Rule,
    schema::prefix_references,
    source::{Edits, Source, line_end},
};

const FILE: &str = "schema.json";

const META: &str = r#""meta": {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": {
      "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
      "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
      "explain": { "type": "string", "maxLength": 280 }
    }
  }"#;

const ERROR: &str = r#""error": {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
      "code": { "type": "string" },
      "message": { "type": "string" },
      "recoverable": { "type": "boolean" },
      "details": { "type": "object" }
    }
  }"#;

/// Renames the output, adds `meta` and `error`, and requires a rationale in data.
pub(super) fn to_v22(draft: &mut Draft<'_>, output: &str) -> Result<(), MigrateError> {
    let source = draft.require(FILE)?;
    let tree = parse(&source)?;
    let newline = line_end(&source.text);
    let mut edits = Edits::default();
    let data_name = if tree.get("data").is_some() { "data" } else { output };
    let data = tree.get(data_name);
    if let Some(data) = data.filter(|_| data_name == "output") {
        rename_key(&source, data, "output", "data", &mut edits);
        rename_output_references(&source, &mut edits);
    }
    if let Some(data) = data {
        add_rationale(data, &mut edits, draft);
    }
    let parts = [("meta", META), ("error", ERROR)];
    let missing: Vec<&str> =
        parts.iter().filter(|(key, _)| tree.get(key).is_none()).map(|(_, text)| *text).collect();
    if let Some(end) = source.text.rfind('}').filter(|_| !missing.is_empty()) {
        let before = source.text.get(..end).unwrap_or_default().trim_end().len();
        let comma = if tree.node().is_empty() { "" } else { "," };
        let text = format!("{comma}\n  {}\n", missing.join(",\n  "));
        edits.replace(before..end, text.replace('\n', newline));
    }
    draft.put(FILE, edits.apply(&source.text))
}

/// v0: joins two files into one document and adjusts the references of each.
pub(super) fn join_v0(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let mut document = serde_json::Map::new();
    document.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    for (file, part) in [("input.schema.json", "input"), ("output.schema.json", "data")] {
        let mut schema = parse(&draft.require(file)?)?.to_serde();
        if let Some(members) = schema.as_object_mut() {
            members.retain(|key, _| key != "$schema" && key != "$id");
        }
        prefix_references(&mut schema, &format!("/{part}"));
        document.insert(part.to_owned(), schema);
        draft.remove(file)?;
    }
    let mut text = String::new();
    Value::from(serde_json::Value::Object(document)).node().write_pretty(&mut text);
    text.push('\n');
    draft.put(FILE, text)
}

/// Renames the key of a member.
fn rename_key(source: &Source, value: Node<'_>, from: &str, to: &str, edits: &mut Edits) {
    let quoted = format!("\"{from}\"");
    let before = source.text.get(..value.offset()).unwrap_or_default();
    if let Some(start) = before.rfind(&quoted) {
        edits.replace(start..start + quoted.len(), format!("\"{to}\""));
    }
}

/// Adjusts references into the renamed output.
fn rename_output_references(source: &Source, edits: &mut Edits) {
    for old in ["\"#/output/", "\"#/output\""] {
        for (start, _) in source.text.match_indices(old) {
            edits.replace(start..start + old.len(), old.replace("output", "data"));
        }
    }
}

/// Adds and requires the rationale that every v2.2 answer has.
fn add_rationale(data: Node<'_>, edits: &mut Edits, draft: &mut Draft<'_>) {
    let properties = data.get("properties");
    let rationale = properties.and_then(|properties| properties.get("rationale"));
    match (properties, rationale) {
        (Some(properties), None) => {
            insert_first(properties, "\"rationale\": { \"type\": \"string\" }", edits);
            draft.note("added the field `rationale` to data; v2.2 requires it");
        }
        (_, Some(rationale)) if rationale.get_str("type") != Some("string") => {
            draft.note("data.rationale can be an object and was not changed; v2.2 readers expect a string");
        }
        (None, None) => {
            return draft.note("the data schema has no properties; add `rationale` manually");
        }
        _ => {}
    }
    match data.get("required") {
        Some(required) if !required.elements().any(|key| key.as_str() == Some("rationale")) => {
            insert_first(required, "\"rationale\"", edits);
        }
        Some(_) => {}
        None => insert_first(data, "\"required\": [\"rationale\"]", edits),
    }
}

/// Inserts a member or an item before the others.
fn insert_first(container: Node<'_>, text: &str, edits: &mut Edits) {
    let separator = if container.is_empty() { "" } else { ", " };
    edits.insert(container.offset() + 1, format!("{text}{separator}"));
}

fn parse(source: &Source) -> Result<Value, MigrateError> {
    Value::parse(&source.text).map_err(|error| {
        let problem = Diagnostic::error(Rule::SchemaSyntax, &source.path, error.to_string());
        MigrateError::Load(LoadError { diagnostics: vec![problem] })
    })
}
