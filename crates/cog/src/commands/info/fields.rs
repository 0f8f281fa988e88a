//! The fields of a schema, one line each.

use cog_module::Module;
use serde_json::Value;

use crate::output::{Console, Table};

/// The fields of an object, as its schema names them.
#[derive(Debug, Default)]
pub(in crate::commands) struct Fields(Vec<Field>);

#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    about: String,
}

impl Fields {
    /// The properties of `schema`; references lead into `document`.
    pub(super) fn of(schema: &Value, document: &Value) -> Self {
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

    /// The fields that the input of a module may have.
    pub(in crate::commands) fn of_input(module: &Module) -> Self {
        let contract = &module.contract;
        contract.input_schema().map(|schema| Self::of(schema, contract.document())).unwrap_or_default()
    }

    /// Their names; those that must be there have a `*`.
    pub(in crate::commands) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|field| field.name.as_str()).collect()
    }

    /// Whether the schema names no field.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields as a table; those that must be there have a `*`.
    pub(super) fn render(&self, console: &Console) -> String {
        let mut table = Table::new(["field", "type", "description"]);
        for Field { name, kind, about } in &self.0 {
            table.row([name.clone(), kind.clone(), about.clone()]);
        }
        let columns = console.out_columns().map(|columns| columns.saturating_sub(2));
        table.render(console.out().paint, columns).lines().map(|line| format!("  {line}\n")).collect()
    }
}

/// What a reference leads to; the reference itself where it leads to nothing.
fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// The type in a word: `string`, `array of object`, `MediaInput`.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    match schema.get("type") {
        Some(Value::String(word)) if word == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => word.clone(),
        },
        Some(Value::String(word)) => word.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if schema.get("enum").is_some() => "enum".to_owned(),
        _ if schema.get("oneOf").is_some() || schema.get("anyOf").is_some() => "one of several".to_owned(),
        _ => "any".to_owned(),
    }
}

/// The words that may stand there, else the description.
fn about(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let Some(words) = schema.get("enum").and_then(Value::as_array) else { return text.to_owned() };
    let words: Vec<String> =
        words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
    if text.is_empty() { words.join(", ") } else { format!("{text} ({})", words.join(", ")) }
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
            Fields::of(&schema, &document).0.into_iter().map(|f| (f.name, f.kind, f.about)).collect();
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
