//! The definitions of a projected schema: all references point to `$defs`.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::{Loss, LossKind};
use crate::subschema::{followed, names};

/// The definitions that a projection refers to: finished, or still to be projected.
#[derive(Debug, Default)]
pub(super) struct Defs {
    names: HashMap<String, String>,
    open: VecDeque<String>,
    finished: Map<String, Value>,
}

impl Defs {
    /// Returns a reference to the schema at a pointer of the document.
    pub(super) fn refer(&mut self, target: &str) -> Value {
        let name = match self.names.get(target) {
            Some(name) => name.clone(),
            None => self.add_target(target),
        };
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// Returns pointer and name of the next schema to project.
    pub(super) fn next(&mut self) -> Option<(String, String)> {
        let target = self.open.pop_front()?;
        let name = self.names.get(&target)?.clone();
        Some((target, name))
    }

    /// Adds a projected definition.
    pub(super) fn add(&mut self, name: String, schema: Value) {
        self.finished.insert(name, schema);
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.finished
    }

    fn add_target(&mut self, target: &str) -> String {
        let plain = plain_name(target);
        let taken: HashSet<&String> = self.names.values().collect();
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| !taken.contains(name)).unwrap_or(plain);
        self.names.insert(target.to_owned(), name.clone());
        self.open.push_back(target.to_owned());
        name
    }
}

/// Returns a name that every provider accepts: `Issue` for `/$defs/Issue`, `data_properties_x` for other pointers.
fn plain_name(target: &str) -> String {
    let short =
        target.strip_prefix("/$defs/").or_else(|| target.strip_prefix("/definitions/")).unwrap_or(target);
    let plain: String = short
        .trim_start_matches('/')
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '_' })
        .collect();
    if plain.is_empty() { "root".to_owned() } else { plain }
}

/// Returns whether any definition is recursive; with `in_required`, through required members only.
pub(super) fn is_recursive(definitions: &Map<String, Value>, in_required: bool) -> bool {
    definitions.keys().any(|name| {
        let mut seen = HashSet::new();
        let mut open = references(definitions.get(name), in_required);
        while let Some(next) = open.pop() {
            if next == *name {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(references(definitions.get(&next), in_required));
            }
        }
        false
    })
}

/// Returns the names of the definitions that a schema refers to; with `in_required`, optional members are left out.
fn references(schema: Option<&Value>, in_required: bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<&Value> = schema.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let reference = members.get("$ref").and_then(Value::as_str);
                names.extend(reference.and_then(|text| text.strip_prefix("#/$defs/")).map(str::to_owned));
                let keywords = members.iter().filter(|(keyword, _)| *keyword != "properties");
                open.extend(keywords.map(|(_, value)| value));
                open.extend(properties(members, in_required));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names
}

/// Returns the schemas of an object's members; with `in_required`, of the required ones.
fn properties(members: &Map<String, Value>, in_required: bool) -> impl Iterator<Item = &Value> {
    let required: HashSet<&str> = names(members.get("required")).collect();
    let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
    let wanted = properties.filter(move |(name, _)| !in_required || required.contains(name.as_str()));
    wanted.map(|(_, schema)| schema)
}

// Merges schemas that apply to the same value.

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
            // Both schemas apply, so the stricter one decides.
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
