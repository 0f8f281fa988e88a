use serde_json::{Map, Value};

use crate::engine::link;
use crate::subschema::is_annotation;

/// What a schema says of a value by itself, as a schema: members and items may be anything, and the schemas for the
/// same value are left out. The names of members stay, since `additionalProperties: false` speaks of them.
pub(crate) fn own(schema: &Value, pointer: &str) -> Value {
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
        // Names are text, so that nothing can lead back here.
        ("propertyNames", Value::Object(_)) => Some(link(pointer)),
        ("items" | "additionalProperties" | "additionalItems", _) => None,
        ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "contains", _) => None,
        _ if is_annotation(keyword) => None,
        _ => Some(value.clone()),
    }
}
