//! Helpers to generate the JSON Schemas from the types of this crate (feature `schema`).

use std::borrow::Cow;

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use crate::capability::CapabilitiesDocument;
use crate::chunk::ChunkForm;
use crate::envelope::EnvelopeForm;
use crate::{ErrorOrigin, FormsFile, Meta, Risk, RiskValue};

/// Returns the schemas of this crate as they are published, each with the name of its file.
pub fn documents() -> [(&'static str, Value); 4] {
    [
        ("envelope", document::<EnvelopeForm<'_>>(include_str!("../schemas/examples/envelope.json"))),
        ("chunk", document::<ChunkForm<'_>>(include_str!("../schemas/examples/chunk.json"))),
        ("capabilities", document::<CapabilitiesDocument<'_>>("[]")),
        ("forms", document::<FormsFile>(include_str!("../schemas/examples/forms.json"))),
    ]
}

/// Generates the schema of a type in the form in which it is written, draft-07.
pub fn document<T: JsonSchema>(examples: &str) -> Value {
    let settings = SchemaSettings::draft07().for_serialize().with_transform(Tidy);
    let mut generated = settings.into_generator().into_root_schema_for::<T>();
    let mut document = Map::new();
    for key in ["$schema", "title", "description"] {
        document.extend(generated.remove(key).map(|value| (key.to_owned(), value)));
    }
    let definitions = generated.remove("definitions");
    document.extend(generated.ensure_object().clone());
    let examples = serde_json::from_str(examples)
        .ok()
        .filter(|it: &Value| it.as_array().is_some_and(|it| !it.is_empty()));
    document.extend(examples.map(|examples| ("examples".to_owned(), examples)));
    document.extend(definitions.map(|definitions| ("definitions".to_owned(), definitions)));
    document.into()
}

/// Removes what the specification does not use: formats, which only numbers have, and null for members that may be absent.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        remove_nulls(schema);
    }
}

/// Removes null from the members that are not required, unless they are declared as nullable.
fn remove_nulls(schema: &mut Schema) {
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|key| key.as_str().map(str::to_owned))
        .collect();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(key, _)| !required.contains(key)) {
        remove_null(property);
    }
}

fn remove_null(property: &mut Value) {
    let Value::Object(members) = property else { return };
    if members.remove("x-nullable").is_some() {
        return;
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        branches.retain(|branch| branch != &json!({ "type": "null" }));
        if let [only] = branches.as_slice() {
            let all = json!([only]);
            members.remove("anyOf");
            members.insert("allOf".to_owned(), all);
        }
    }
}

/// Declares types that only stand for a schema.
macro_rules! schemas {
    ($($(#[$doc:meta])* $name:ident $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    /// Any value.
    Anything {};
    /// An object with any members.
    Object { "type": "object" };
    /// The details of an error.
    ErrorDetails {
        "type": "object",
        "properties": {
            "origin": { "description": "Who reports the error.", "enum": ErrorOrigin::NAMES },
        },
    };
    /// A cost, or null if it is unknown.
    CostOrNull {
        "type": ["object", "null"],
        "x-nullable": true,
        "required": ["amount", "currency", "source", "date"],
        "properties": {
            "amount": { "type": "number", "minimum": 0 },
            "currency": { "type": "string", "minLength": 1 },
            "source": { "type": "string", "minLength": 1 },
            "date": { "type": "string", "minLength": 1 },
        },
    };
    /// An object, or null, which counts as absent.
    ObjectOrNull { "type": ["object", "null"], "x-nullable": true };
    /// An array or an object.
    ArrayOrObject { "type": ["array", "object"] };
}

impl JsonSchema for RiskValue {
    fn schema_name() -> Cow<'static, str> {
        "risk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The harm that the answer can do: a level, or an object if the enums of the module are extensible.",
            "oneOf": [
                { "enum": Risk::NAMES },
                {
                    "type": "object",
                    "required": ["custom", "reason"],
                    "properties": {
                        "custom": { "type": "string", "maxLength": 32 },
                        "reason": { "type": "string" }
                    }
                }
            ]
        })
    }
}

/// The meta of the first chunk, whose confidence may be unknown (SPEC 6.3).
pub(crate) struct FirstMeta;

impl JsonSchema for FirstMeta {
    fn schema_name() -> Cow<'static, str> {
        "firstMeta".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Meta::json_schema(generator);
        if let Some(confidence) =
            schema.ensure_object().get_mut("properties").and_then(|all| all.get_mut("confidence"))
        {
            confidence.as_object_mut().map(|it| it.insert("type".to_owned(), json!(["number", "null"])));
        }
        schema
    }
}

/// Declares that exactly one of the alternatives applies.
pub(crate) fn one_of(schema: &mut Schema) {
    if let Some(branches) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), branches);
    }
}

/// Allows a usage without a cost, which counts as unknown.
pub(crate) fn allow_absent_cost(schema: &mut Schema) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|key| key != "cost");
    }
}

/// Adds the older name of `processing_time_ms`, which is only read.
pub(crate) fn add_latency(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let latency = json!({ "description": "The older name of `processing_time_ms`.", "type": "integer", "minimum": 0 });
        properties.insert("latency_ms".to_owned(), latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schemas_describe_the_types() {
        for (name, schema) in documents() {
            let published = name.parse::<crate::Schema>().unwrap().text();
            assert!(format!("{schema:#}\n") == published, "{name}: run `cargo xtask generate`");
        }
    }
}
