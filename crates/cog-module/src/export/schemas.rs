//! The schemas of a module for other programs: JSON Schema 2020-12.

use cog_spec::Dialect;
use serde_json::{Map, Value, json};

use crate::Module;

/// Returns the schema of the input, an object.
pub fn input_schema(module: &Module) -> Map<String, Value> {
    let projected = module.contract.project_input(Dialect::JsonSchema).schema;
    let mut schema = members(projected.unwrap_or_default());
    schema.insert("type".to_owned(), Value::from("object"));
    schema
}

/// Returns the schema of the envelope with the data of the module.
pub fn envelope_schema(module: &Module) -> Map<String, Value> {
    let (data, definitions) = data(module);
    let text = || json!({ "type": "string" });
    let mut schema = members(json!({
        "type": "object",
        "required": ["ok", "meta"],
        "properties": {
            "ok": { "type": "boolean", "description": "Whether the run succeeded: then there is `data`, otherwise `error`." },
            "meta": {
                "type": "object",
                "required": ["confidence", "risk", "explain"],
                "properties": {
                    "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                    "risk": { "description": "none, low, medium or high" },
                    "explain": text(),
                },
            },
            "data": data,
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": { "code": text(), "message": text(), "suggestion": text() },
            },
        },
    }));
    if let Some(definitions) = definitions {
        schema.insert("$defs".to_owned(), definitions);
    }
    schema
}

/// Returns the schema of the data.
pub fn data_schema(module: &Module) -> Value {
    let (mut data, definitions) = data(module);
    if let (Some(definitions), Some(members)) = (definitions, data.as_object_mut()) {
        members.insert("$defs".to_owned(), definitions);
    }
    data
}

/// Returns the schema of the data, and the definitions that it refers to.
fn data(module: &Module) -> (Value, Option<Value>) {
    let mut projected = module.contract.project(Dialect::JsonSchema).schema.unwrap_or_default();
    let definitions = projected.as_object_mut().and_then(|root| root.shift_remove("$defs"));
    let mut data = match projected.pointer_mut("/anyOf/0/properties/data") {
        Some(data) => data.take(),
        // The older formats have no envelope.
        None => projected,
    };
    loosen(&mut data, module.contract.data_schema());
    (data, definitions)
}

/// Removes what the specification requires only of a model: the rationale and insights, which the answer of a composition
/// may lack.
fn loosen(data: &mut Value, own: Option<&Value>) {
    let own_required = own.and_then(|own| own.get("required")).and_then(Value::as_array);
    if let Some(required) = data.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| own_required.is_some_and(|own| own.contains(name)));
    }
    let has_own = own.is_some_and(|own| own.pointer("/properties/extensions").is_some());
    if let Some(extensions) = data.pointer_mut("/properties/extensions").filter(|_| !has_own) {
        *extensions = json!({ "type": "object" });
    }
}

fn members(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
