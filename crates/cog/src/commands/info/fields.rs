//! The fields of a schema, one per line.

use cog_module::Module;
use serde_json::Value;

use crate::output::{Console, Table};

/// The fields of an object schema.
#[derive(Debug, Default)]
pub(in crate::commands) struct Fields(Vec<Field>);

#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    about: String,
}

impl Fields {
    /// Reads the properties of `schema`; references are resolved in `document`.
    pub(super) fn new(schema: &Value, document: &Value) -> Self {
        let schema = resolve(schema, document);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let field = |(name, schema): (&String, &Value)| Field {
            name: if required.contains(&name.as_str()) { format!("{name}*") } else { name.clone() },
            kind: kind(schema),
            about: about(resolve(schema, document)),
        };
        Self(properties.map(field).collect())
    }

    /// Returns the fields of a module's input.
    pub(in crate::commands) fn for_input(module: &Module) -> Self {
        let contract = &module.contract;
        contract.input_schema().map(|schema| Self::new(schema, contract.document())).unwrap_or_default()
    }

    /// Returns the names; required fields have a `*`.
    pub(in crate::commands) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|field| field.name.as_str()).collect()
    }

    /// Whether the schema has no fields.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the fields as a table; required fields have a `*`.
    pub(super) fn render(&self, console: &Console) -> String {
        let mut table = Table::new(["field", "type", "description"]);
        for Field { name, kind, about } in &self.0 {
            table.row([name.clone(), kind.clone(), about.clone()]);
        }
        let columns = console.out_columns().map(|columns| columns.saturating_sub(2));
        table.render(console.out().palette, columns).lines().map(|line| format!("  {line}\n")).collect()
    }
}

/// Resolves a reference; returns the reference itself if there is no target.
fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// Returns the type: `string`, `array of object`, `MediaInput`.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    match schema.get("type") {
        Some(Value::String(value)) if value == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => value.clone(),
        },
        Some(Value::String(value)) => value.clone(),
        Some(Value::Array(values)) => {
            values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ if schema.get("enum").is_some() => "enum".to_owned(),
        _ if schema.get("oneOf").is_some() || schema.get("anyOf").is_some() => "one of several".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns the description, with the values of an enum.
fn about(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return text.to_owned() };
    let values: Vec<String> =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    if text.is_empty() { values.join(", ") } else { format!("{text} ({})", values.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_property_is_a_line() {
        let document = json!({"$defs": {"Pic": {"type": "object"}}});
        let schema = json!({
            "type": "object",
            "required": ["code"],
            "properties": {
                "code": {"type": "string", "description": "The code"},
                "lang": {"enum": ["py", "js"]},
                "pics": {"type": "array", "items": {"$ref": "#/$defs/Pic"}}
            }
        });
        let fields: Vec<_> =
            Fields::new(&schema, &document).0.into_iter().map(|f| (f.name, f.kind, f.about)).collect();
        let line = |name: &str, kind: &str, about: &str| (name.to_owned(), kind.to_owned(), about.to_owned());
        assert_eq!(
            fields,
            [
                line("code*", "string", "The code"),
                line("lang", "enum", "py, js"),
                line("pics", "array of Pic", "")
            ]
        );
    }
}
