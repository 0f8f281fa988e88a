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
