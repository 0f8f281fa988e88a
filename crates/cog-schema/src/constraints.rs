//! The constraints of a schema, each with the field that it applies to.

use serde_json::{Map, Value};

use crate::subschema::{is_annotation, is_enforced, referred, token};

/// The maximum number of schemas that are visited. References to schemas that refer to others twice multiply the fields.
const MAX_SCHEMAS: usize = 4_000;

/// One keyword of a schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constraint<'a> {
    /// The field, as a path in which `[]` is any element and `*` any other key: `data.issues[].title`.
    pub(crate) path: String,
    /// The JSON pointer of its schema.
    pub(crate) pointer: String,
    /// The keyword.
    pub(crate) keyword: &'a str,
    /// The value of the keyword.
    pub(crate) value: &'a Value,
    /// The schema that contains it.
    pub(crate) schema: &'a Value,
}

/// Returns the constraints that a document reaches from the schema at a pointer. References are followed, recursive ones
/// once. After 4,000 schemas the rest is left out.
pub(crate) fn constraints<'a>(document: &'a Value, pointer: &str) -> Vec<Constraint<'a>> {
    constraints_at(document, pointer, "")
}

/// As [`constraints`], with the path of the value that the schema applies to.
pub(crate) fn constraints_at<'a>(document: &'a Value, pointer: &str, path: &str) -> Vec<Constraint<'a>> {
    let mut walk = Walk { document, open: Vec::new(), found: Vec::new(), remaining: MAX_SCHEMAS };
    walk.schema(pointer, path);
    walk.found
}

struct Walk<'a> {
    document: &'a Value,
    /// The references that are being followed.
    open: Vec<String>,
    found: Vec<Constraint<'a>>,
    /// The number of schemas that may still be visited.
    remaining: usize,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, pointer: &str, path: &str) {
        let Some(remaining) = self.remaining.checked_sub(1) else { return };
        self.remaining = remaining;
        let Some(schema) = self.document.pointer(pointer) else { return };
        let Some(members) = schema.as_object() else { return };
        if let Some(local) = referred(schema) {
            if !self.open.contains(&local) {
                self.open.push(local.clone());
                self.schema(&local, path);
                self.open.pop();
            }
            return;
        }
        for (keyword, value) in members.iter().filter(|(keyword, _)| !is_annotation(keyword)) {
            if is_constraint(keyword, value) {
                self.add(Constraint {
                    path: path.to_owned(),
                    pointer: pointer.to_owned(),
                    keyword,
                    value,
                    schema,
                });
            }
            self.inner(keyword, value, pointer, path);
        }
    }

    /// Follows the schemas of a keyword whose values must conform to them.
    fn inner(&mut self, keyword: &str, value: &Value, pointer: &str, path: &str) {
        let at = format!("{pointer}/{keyword}");
        match (keyword, value) {
            ("properties", Value::Object(fields)) => self.fields(fields, &at, path),
            ("items" | "prefixItems" | "allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                let is_items = matches!(keyword, "items" | "prefixItems");
                let path = if is_items { format!("{path}[]") } else { path.to_owned() };
                (0..all.len()).for_each(|index| self.schema(&format!("{at}/{index}"), &path));
            }
            ("items", _) => self.schema(&at, &format!("{path}[]")),
            ("additionalProperties", _) => self.schema(&at, &format!("{path}.*")),
            _ => {}
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, at: &str, path: &str) {
        for name in fields.keys() {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.schema(&format!("{at}/{}", token(name)), &inner);
        }
    }

    fn add(&mut self, constraint: Constraint<'a>) {
        let is_known = self.found.iter().any(|other| {
            other.path == constraint.path
                && other.keyword == constraint.keyword
                && other.value == constraint.value
        });
        if !is_known {
            self.found.push(constraint);
        }
    }
}

/// Returns whether a keyword restricts values by itself, and not only through the schemas in it.
fn is_constraint(keyword: &str, value: &Value) -> bool {
    match keyword {
        "properties" | "then" | "else" | "$schema" | "$id" => false,
        // `prefixItems` is only in projections.
        "items" | "prefixItems" => value.is_array(),
        "additionalProperties" => *value != Value::Bool(true),
        "minItems" | "minLength" | "minProperties" => value.as_u64() != Some(0),
        "required" => value.as_array().is_some_and(|keys| !keys.is_empty()),
        "uniqueItems" => *value == Value::Bool(true),
        _ => is_enforced(keyword, value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_fields_and_follows_references_once() {
        let document = json!({
            "data": { "type": "object", "properties": {
                "issues": { "type": "array", "maxItems": 3, "items": { "$ref": "#/$defs/Issue" } },
            } },
            "$defs": { "Issue": { "required": ["title"], "properties": {
                "title": { "maxLength": 9, "description": "A title" },
                "more": { "minItems": 1, "items": { "$ref": "#/$defs/Issue" } },
            } } },
        });
        let found: Vec<String> = constraints(&document, "/data")
            .iter()
            .map(|one| format!("{} {} {}", one.path, one.pointer, one.keyword))
            .collect();
        assert_eq!(
            found,
            [
                " /data type",
                "issues /data/properties/issues type",
                "issues /data/properties/issues maxItems",
                "issues[] /$defs/Issue required",
                "issues[].title /$defs/Issue/properties/title maxLength",
                "issues[].more /$defs/Issue/properties/more minItems",
            ]
        );
    }

    #[test]
    fn keyword_without_an_effect_is_no_constraint() {
        let keywords = |schema: Value| -> Vec<String> {
            constraints_at(&schema, "", "m")
                .iter()
                .map(|one| format!("{} {} {}", one.path, one.pointer, one.keyword))
                .collect()
        };
        for schema in [
            json!({ "additionalProperties": true, "minItems": 0, "minLength": 0, "minProperties": 0 }),
            json!({ "required": [], "uniqueItems": false, "description": "A map" }),
        ] {
            assert_eq!(keywords(schema), [""; 0]);
        }
        let map =
            json!({ "additionalProperties": { "minLength": 1 }, "required": ["a"], "minProperties": 1 });
        assert_eq!(
            keywords(map),
            [
                "m  additionalProperties",
                "m.* /additionalProperties minLength",
                "m  required",
                "m  minProperties",
            ]
        );
        assert_eq!(
            keywords(json!({ "uniqueItems": true, "minItems": 1 })),
            ["m  uniqueItems", "m  minItems"]
        );
    }

    #[test]
    fn references_that_multiply_are_bounded() {
        let level = |index: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
            (index.to_string(), json!({ "type": "object", "properties": { "a": next, "b": next } }))
        };
        let levels: Map<String, Value> = (0..40).map(level).collect();
        let document = json!({ "$ref": "#/$defs/0", "$defs": levels });
        assert!((1_000..=MAX_SCHEMAS).contains(&constraints(&document, "").len()));
    }
}
