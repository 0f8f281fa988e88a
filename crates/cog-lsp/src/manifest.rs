//! The keys and values of a manifest, from its JSON Schema (`cog schema manifest`).

use std::sync::LazyLock;

use cog_spec::Schema;
use serde_json::Value;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(Schema::Manifest.text()).unwrap_or_default());

/// Returns the schema at keys; `-` is the element of a list.
fn descend<'a>(path: impl IntoIterator<Item = &'a str>) -> Option<&'static Value> {
    let mut schema = &*SCHEMA;
    for key in path {
        schema = match key {
            "-" => schema.get("items")?,
            key => schema.get("properties")?.get(key)?,
        };
    }
    Some(schema)
}

/// Returns the keys of a mapping, each with its schema.
pub(crate) fn keys(path: &[String]) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let schema = descend(path.iter().map(String::as_str));
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    properties.into_iter().flatten().map(|(key, schema)| (key.as_str(), schema))
}

/// Returns the schema of a key.
pub(crate) fn key(path: &[String], key: &str) -> Option<&'static Value> {
    descend(path.iter().map(String::as_str).chain([key]))
}

/// Returns the values that a schema lists.
pub(crate) fn values(schema: &Value) -> Vec<String> {
    let own = schema.get("enum").or_else(|| schema.get("items")?.get("enum"));
    let listed = own.and_then(Value::as_array).into_iter().flatten();
    let listed: Vec<String> =
        listed.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    let is_flag = schema.get("type").and_then(Value::as_str) == Some("boolean");
    if is_flag && listed.is_empty() { vec!["true".to_owned(), "false".to_owned()] } else { listed }
}

/// Returns the description of a schema in Markdown: what it means, its values, its default.
pub(crate) fn describe(schema: &Value) -> String {
    let mut text = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let values = values(schema);
    if !values.is_empty() {
        text += &format!("\n\nValues: `{}`", values.join("`, `"));
    }
    if let Some(default) = schema.get("default") {
        text += &format!(
            "\n\nDefault: `{}`",
            default.as_str().map_or_else(|| default.to_string(), str::to_owned)
        );
    }
    text
}
