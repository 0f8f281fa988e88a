//! Merges schemas that apply to the same value.

use serde_json::{Map, Value};

use super::loss::{Loss, LossKind};
use crate::subschema::target;

/// Merges `from` into `into`. Of keywords that cannot be merged the first stays, and a loss is added.
pub(crate) fn merge(
    into: &mut Map<String, Value>,
    from: &Map<String, Value>,
    at: &str,
    lost: &mut Vec<Loss>,
) {
    for (keyword, value) in from {
        let Some(present) = into.get_mut(keyword) else {
            into.insert(keyword.clone(), value.clone());
            continue;
        };
        match (keyword.as_str(), present, value) {
            (_, present, value) if *present == *value => {}
            ("properties" | "patternProperties", Value::Object(present), Value::Object(more)) => {
                merge_members(present, more);
            }
            ("required", Value::Array(present), Value::Array(more)) => {
                let new: Vec<Value> = more.iter().filter(|key| !present.contains(key)).cloned().collect();
                present.extend(new);
            }
            ("additionalProperties", present, Value::Bool(false)) => *present = Value::Bool(false),
            ("description" | "title" | "default" | "examples", ..) => {}
            _ => lost.push(Loss {
                pointer: at.to_owned(),
                keyword: keyword.clone(),
                kind: LossKind::EnforcedLocally,
                reason: "two schemas set it for one value; only the first is sent".to_owned(),
            }),
        }
    }
}

/// Merges members: a member of both must match both schemas.
fn merge_members(present: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, schema) in more {
        match present.get_mut(name) {
            Some(known) if known != schema => {
                let both = vec![known.take(), schema.clone()];
                *known = Value::Object(Map::from_iter([("allOf".to_owned(), Value::Array(both))]));
            }
            Some(_) => {}
            None => {
                present.insert(name.clone(), schema.clone());
            }
        }
    }
}

/// Returns a schema without `$ref` and `allOf` at its top, as far as they can be merged.
pub(crate) fn flattened(document: &Value, schema: &Value, at: &str, lost: &mut Vec<Loss>) -> Value {
    let Some(members) = followed(document, schema).as_object() else { return schema.clone() };
    let mut flat = members.clone();
    if let Some(Value::Array(parts)) = flat.shift_remove("allOf") {
        for part in parts {
            if let Value::Object(part) = flattened(document, &part, at, lost) {
                merge(&mut flat, &part, at, lost);
            }
        }
    }
    Value::Object(flat)
}

/// Returns the target of a chain of references.
fn followed<'a>(document: &'a Value, mut schema: &'a Value) -> &'a Value {
    while let Some(next) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(target)
        .and_then(|pointer| document.pointer(&pointer))
    {
        schema = next;
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns two schemas as one, and the keywords that are lost.
    fn merged(mut into: Value, from: Value) -> (Value, Vec<String>) {
        let mut lost = Vec::new();
        merge(into.as_object_mut().unwrap(), from.as_object().unwrap(), "", &mut lost);
        (into, lost.into_iter().map(|loss| loss.keyword).collect())
    }

    #[test]
    fn keywords_of_both_schemas_apply() {
        for (into, from, both) in [
            (
                json!({ "minimum": 1 }),
                json!({ "minimum": 1, "maximum": 2 }),
                json!({ "minimum": 1, "maximum": 2 }),
            ),
            (
                json!({ "additionalProperties": { "type": "null" } }),
                json!({ "additionalProperties": false }),
                json!({ "additionalProperties": false }),
            ),
            (
                json!({ "description": "A", "default": 1 }),
                json!({ "description": "B", "default": 2 }),
                json!({ "description": "A", "default": 1 }),
            ),
            (
                json!({ "required": ["a", "b"] }),
                json!({ "required": ["b", "c"] }),
                json!({ "required": ["a", "b", "c"] }),
            ),
            (
                json!({ "properties": { "a": { "type": "null" }, "b": { "minimum": 1 } } }),
                json!({ "properties": { "a": { "type": "null" }, "b": { "maximum": 2 }, "c": true } }),
                json!({ "properties": {
                    "a": { "type": "null" },
                    "b": { "allOf": [{ "minimum": 1 }, { "maximum": 2 }] },
                    "c": true,
                } }),
            ),
        ] {
            assert_eq!(merged(into, from), (both, vec![]));
        }
    }

    #[test]
    fn keyword_that_cannot_be_merged_is_lost() {
        let lost = (json!({ "minimum": 1 }), vec!["minimum".to_owned()]);
        assert_eq!(merged(json!({ "minimum": 1 }), json!({ "minimum": 2 })), lost);
    }
}
