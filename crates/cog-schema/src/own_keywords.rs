use serde_json::{Map, Value};

use crate::engine::link;
use crate::subschema::is_annotation;

/// Returns a schema with only the own keywords of another: members and items can be anything, and schemas for the same
/// value are omitted. The names of members stay, because `additionalProperties: false` depends on them.
pub(crate) fn own_keywords(schema: &Value, pointer: &str) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let own = |(keyword, value): (&String, &Value)| {
        Some((keyword.clone(), own_keyword(keyword, value, &format!("{pointer}/{keyword}"))?))
    };
    Value::Object(members.iter().filter_map(own).collect())
}

fn own_keyword(keyword: &str, value: &Value, pointer: &str) -> Option<Value> {
    match (keyword, value) {
        ("properties" | "patternProperties", Value::Object(members)) => {
            Some(members.keys().map(|name| (name.clone(), Value::Bool(true))).collect::<Map<_, _>>().into())
        }
        ("items", Value::Array(list)) => Some(list.iter().map(|_| Value::Bool(true)).collect()),
        ("additionalProperties" | "additionalItems", Value::Bool(false)) => Some(Value::Bool(false)),
        ("dependencies", Value::Object(members)) => {
            let lists = members.iter().filter(|(_, value)| value.is_array());
            Some(lists.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into())
        }
        // Names are strings, so this cannot be recursive.
        ("propertyNames", Value::Object(_)) => Some(link(pointer)),
        ("items" | "additionalProperties" | "additionalItems", _) => None,
        ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "contains", _) => None,
        _ if is_annotation(keyword) => None,
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_of_other_values_are_omitted() {
        let schema = json!({
            "title": "T",
            "type": "object",
            "required": ["a"],
            "properties": { "a": { "type": "string" } },
            "patternProperties": { "^b": { "type": "string" } },
            "additionalProperties": false,
            "propertyNames": { "minLength": 1 },
            "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
            "items": [{ "type": "string" }, { "type": "null" }],
            "additionalItems": { "type": "string" },
            "contains": { "const": 1 },
            "allOf": [{ "type": "object" }],
            "$defs": { "x": {} },
        });
        let own = json!({
            "type": "object",
            "required": ["a"],
            "properties": { "a": true },
            "patternProperties": { "^b": true },
            "additionalProperties": false,
            "propertyNames": link("/data/propertyNames"),
            "dependencies": { "a": ["b"] },
            "items": [true, true],
        });
        assert_eq!(own_keywords(&schema, "/data"), own);
        assert_eq!(own_keywords(&json!({ "items": { "type": "string" } }), ""), json!({}));
        assert_eq!(own_keywords(&json!({ "propertyNames": false }), ""), json!({ "propertyNames": false }));
        assert_eq!(own_keywords(&json!(false), ""), json!(false));
    }
}
