//! Which modules, and which of their values, are sent before an answer is complete.

use std::sync::Arc;

use cog_json::{Path, Segment};
use cog_module::Module;
use cog_spec::{ResponseMode, Tier};
use serde_json::{Map, Value};

/// A module whose data are sent while they arrive.
pub(super) struct Live(Arc<Module>);

/// The keywords that no text violates.
const ANNOTATIONS: &[&str] =
    &["title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"];
/// The keywords of one value.
const SIMPLE: &[&str] = &[
    "required",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// The keywords whose schemas may say more about a value that `properties` and `items` define.
const COMBINING: &[&str] = &["anyOf", "oneOf", "allOf"];

impl Live {
    /// Returns none for a module whose answer is known only at its end:
    ///
    /// - it has no streams, or its tier refuses complete answers because of their confidence or risk;
    /// - media are inserted into its data;
    /// - its data may contain nulls. Some dialects write them for absent members, so that they arrive at the end.
    pub(super) fn from_module(module: &Arc<Module>) -> Option<Self> {
        let manifest = &module.manifest;
        let is_gated = manifest.tier == Some(Tier::Exec)
            || manifest.constraints.behavior_equivalence_false_max_confidence.is_some();
        let makes_media = manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty());
        if manifest.response.mode == ResponseMode::Sync || is_gated || makes_media {
            return None;
        }
        let live = Self(Arc::clone(module));
        let data = live.0.contract.data_schema()?;
        live.is_plain(data, &mut Vec::new()).then_some(live)
    }

    /// Returns whether every text is valid at a path of the envelope, so that a string may be sent before its end.
    pub(super) fn accepts_any_text(&self, path: &Path) -> bool {
        let Some(mut schema) = self.0.contract.data_schema() else { return false };
        for step in path.segments().skip(1) {
            let Some(members) = self.resolve(schema) else { return false };
            if COMBINING.iter().any(|keyword| members.contains_key(*keyword)) {
                return false;
            }
            let next = match step {
                Segment::Key(key) => members.get("properties").and_then(|properties| properties.get(key)),
                Segment::Index(_) => members.get("items"),
            };
            let Some(next) = next else { return false };
            schema = next;
        }
        self.resolve(schema).is_some_and(|members| {
            members.get("type").and_then(Value::as_str) == Some("string")
                && members.keys().all(|keyword| keyword == "type" || ANNOTATIONS.contains(&keyword.as_str()))
        })
    }

    /// Returns whether a schema allows no null, and what it says about a value is known without the values around it.
    fn is_plain<'m>(&'m self, schema: &'m Value, visited: &mut Vec<&'m str>) -> bool {
        let Some(members) = schema.as_object() else { return false };
        let states_type = ["type", "enum", "const", "$ref", "anyOf", "oneOf"];
        states_type.iter().any(|keyword| members.contains_key(*keyword))
            && members.iter().all(|(keyword, value)| self.is_plain_keyword(keyword, value, visited))
    }

    fn is_plain_keyword<'m>(
        &'m self,
        keyword: &'m str,
        value: &'m Value,
        visited: &mut Vec<&'m str>,
    ) -> bool {
        match (keyword, value) {
            ("type", Value::String(name)) => name != "null",
            ("type" | "enum", Value::Array(values)) => {
                !values.iter().any(|value| value.is_null() || value == "null" && keyword == "type")
            }
            ("const", value) => !value.is_null(),
            ("properties", Value::Object(properties)) => {
                properties.iter().all(|(name, schema)| name == "extensions" || self.is_plain(schema, visited))
            }
            ("additionalProperties", Value::Bool(_)) => true,
            ("items" | "additionalProperties", schema) => self.is_plain(schema, visited),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter().all(|schema| self.is_plain(schema, visited))
            }
            ("$ref", Value::String(pointer)) => {
                if visited.contains(&pointer.as_str()) {
                    return true; // it was checked, or is being checked
                }
                visited.push(pointer);
                self.at(pointer).is_some_and(|schema| self.is_plain(schema, visited))
            }
            _ => SIMPLE.contains(&keyword) || ANNOTATIONS.contains(&keyword),
        }
    }

    /// Returns the keywords of a schema, or of the one that it refers to.
    fn resolve<'m>(&'m self, schema: &'m Value) -> Option<&'m Map<String, Value>> {
        let mut members = schema.as_object()?;
        for _ in 0..16 {
            let Some(pointer) = members.get("$ref") else { return Some(members) };
            if members.len() > 1 {
                return None;
            }
            members = self.at(pointer.as_str()?)?.as_object()?;
        }
        None
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.contract.document().pointer(pointer.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests {
    use cog_module::files::write_atomic;
    use cog_run::Runtime;
    use serde_json::json;

    use super::*;

    fn live(manifest: &str, data: &Value) -> Option<Live> {
        let directory = tempfile::tempdir().unwrap();
        let manifest =
            format!("name: live\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n{manifest}");
        let schema = json!({ "data": data, "$defs": { "node": {
            "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "label": { "type": "string" } } } } });
        let files = [
            ("module.yaml", manifest),
            ("prompt.md", "Answer.".to_owned()),
            ("schema.json", schema.to_string()),
        ];
        for (file, text) in files {
            write_atomic(&directory.path().join(file), &text).unwrap();
        }
        Live::from_module(&Runtime::offline().load(directory.path().to_str().unwrap()).unwrap())
    }

    fn object(property: &Value) -> Value {
        json!({ "type": "object", "properties": { "a": property, "extensions": { "type": ["object", "null"] } } })
    }

    #[test]
    fn modules_whose_answers_are_known_at_the_end_are_not_live() {
        let plain = object(&json!({ "type": "string" }));
        for manifest in ["response: { mode: both }\n", "response: { mode: streaming }\ntier: decision\n"] {
            assert!(live(manifest, &plain).is_some(), "{manifest}");
        }
        for manifest in [
            "response: { mode: sync }\n",
            "response: { mode: both }\ntier: exec\n",
            "response: { mode: both }\nmodalities: { output: [text, image] }\n",
            "response: { mode: both }\nconstraints: { behavior_equivalence_false_max_confidence: 0.7 }\n",
        ] {
            assert!(live(manifest, &plain).is_none(), "{manifest}");
        }
    }

    #[test]
    fn data_that_may_contain_nulls_are_not_live() {
        let is_live = |property| live("response: { mode: both }\n", &object(&property)).is_some();
        for property in [
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 } }),
            json!({ "anyOf": [{ "enum": ["x"] }, { "type": "object", "properties": { "b": { "const": 1 } } }] }),
            json!({ "$ref": "#/$defs/node" }),
            json!({ "type": "object", "additionalProperties": { "type": "number" } }),
        ] {
            assert!(is_live(property.clone()), "{property}");
        }
        for property in [
            json!({ "type": ["string", "null"] }),
            json!({ "enum": ["x", null] }),
            json!({ "description": "anything" }),
            json!({ "type": "array", "items": { "type": "null" } }),
            json!({ "type": "object", "if": { "required": ["b"] } }),
        ] {
            assert!(!is_live(property.clone()), "{property}");
        }
    }

    #[test]
    fn only_strings_without_constraints_accept_any_text() {
        let accepts = |property, path: &str| {
            let live = live("response: { mode: both }\n", &object(&property)).unwrap();
            live.accepts_any_text(&path.parse().unwrap())
        };
        assert!(accepts(json!({ "type": "string", "description": "d" }), "data.a"));
        assert!(accepts(
            json!({ "type": "array", "items": { "$ref": "#/$defs/node" } }),
            "data.a[3].next.label"
        ));
        for property in [
            json!({ "type": "string", "maxLength": 5 }),
            json!({ "type": "string", "enum": ["x"] }),
            json!({ "type": "integer" }),
            json!({ "allOf": [{ "type": "string" }], "type": "string" }),
        ] {
            assert!(!accepts(property.clone(), "data.a"), "{property}");
        }
        assert!(!accepts(json!({ "type": "string" }), "data.b"));
    }
}
