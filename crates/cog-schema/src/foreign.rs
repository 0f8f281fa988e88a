//! Schemas of other programs, such as the arguments of a tool of a server.
//!
//! They are of any draft, 2020-12 if they name none, and contain what cannot be checked here: patterns with look-around, and
//! references that lead nowhere. The other program checks its arguments itself, so that none of this is a reason to refuse it.

use serde_json::{Map, Value, json};

use crate::{
    engine::Pattern,
    subschema::{followed, is_annotation, reference, target},
};

/// A schema of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignSchema {
    /// The schema for models and vendors: as it was written, without what vendors refuse.
    pub sent: Value,
    /// A document for [`Contract::compile`](crate::Contract::compile) whose `input` is the schema, in Draft-07.
    pub document: Value,
}

impl ForeignSchema {
    /// Reads a schema. What is not a schema stays as it is, so that compiling the document reports it.
    pub fn read(schema: &Value) -> Self {
        let mut sent = schema.clone();
        each_schema(&mut sent, &mut |members| {
            remove_unsupported_patterns(members);
            remove_refused(members, schema);
        });
        let mut input = sent.clone();
        if is_current(schema) {
            each_schema(&mut input, &mut to_draft7);
        }
        each_schema(&mut input, &mut |members| move_reference(members, is_current(schema)));
        let mut document = Map::new();
        for key in DEFINITIONS {
            let definitions = input.as_object_mut().and_then(|members| members.shift_remove(key));
            document.extend(definitions.map(|definitions| (key.to_owned(), definitions)));
        }
        document.insert("input".to_owned(), input);
        Self { sent, document: Value::Object(document) }
    }
}

/// The members of a schema that most references start from.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Returns whether a schema is of a draft after Draft-07.
fn is_current(schema: &Value) -> bool {
    let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    !["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|draft| named.contains(draft))
}

/// Changes a schema and the schemas that it contains, the inner ones first.
fn each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependencies"
                | "dependentSchemas",
                Value::Object(named),
            ) => named.values_mut().for_each(|schema| each_schema(schema, change)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(list)) => {
                list.iter_mut().for_each(|schema| each_schema(schema, change));
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else",
                schema,
            ) => each_schema(schema, change),
            _ => {}
        }
    }
    change(members);
}

/// Removes the patterns that cannot be matched in linear time, such as one with look-around. The description says that there is
/// one. Vendors refuse them too.
fn remove_unsupported_patterns(members: &mut Map<String, Value>) {
    let pattern = members.get("pattern").and_then(Value::as_str);
    if pattern.is_some_and(|pattern| Pattern::new(pattern).is_err()) {
        members.shift_remove("pattern");
        let about = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let separator = if about.is_empty() { "" } else { " " };
        let about = format!("{about}{separator}The tool checks it against a pattern.");
        members.insert("description".to_owned(), about.into());
    }
    let Some(named) = members.get_mut("patternProperties").and_then(Value::as_object_mut) else { return };
    let count = named.len();
    named.retain(|pattern, _| Pattern::new(pattern).is_ok());
    if named.len() < count
        && members.get("additionalProperties").is_some_and(|rest| rest != &Value::Bool(true))
    {
        // The names that the pattern allowed would now be forbidden.
        members.shift_remove("additionalProperties");
    }
}

/// Removes what vendors refuse: references that do not resolve within the schema, the exclusive bounds of Draft-04, rules for
/// names, and the name of the draft.
fn remove_refused(members: &mut Map<String, Value>, root: &Value) {
    let reference = members.get("$ref").and_then(Value::as_str);
    let is_dangling = |reference| target(reference).is_none_or(|pointer| root.pointer(&pointer).is_none());
    if reference.is_some_and(is_dangling) {
        members.shift_remove("$ref");
    }
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = members.get(exclusive).cloned() else { continue };
        members.shift_remove(exclusive);
        let bound = if is_exclusive { members.shift_remove(inclusive) } else { None };
        members.extend(bound.map(|bound| (exclusive.to_owned(), bound)));
    }
    members.shift_remove("propertyNames");
    members.shift_remove("$schema");
}

/// Rewrites the keywords that later drafts renamed or changed. The other new ones have no effect in Draft-07.
fn to_draft7(members: &mut Map<String, Value>) {
    if let Some(positions) = members.shift_remove("prefixItems") {
        let further = members.shift_remove("items");
        members.insert("items".to_owned(), positions);
        members.extend(further.map(|schema| ("additionalItems".to_owned(), schema)));
    }
    let dependencies: Map<String, Value> = ["dependentRequired", "dependentSchemas"]
        .into_iter()
        .filter_map(|keyword| members.shift_remove(keyword))
        .filter_map(|named| named.as_object().cloned())
        .flatten()
        .collect();
    if !dependencies.is_empty() {
        members.entry("dependencies").or_insert(Value::Object(dependencies));
    }
    if members.contains_key("minContains") || members.contains_key("maxContains") {
        members.shift_remove("contains");
    }
    // Draft-07 ignores what stands next to a reference.
    let has_others = members.keys().any(|keyword| keyword != "$ref" && !is_annotation(keyword));
    if members.contains_key("$ref") && has_others {
        let (labels, mut others): (Map<_, _>, Map<_, _>) =
            std::mem::take(members).into_iter().partition(|(keyword, _)| is_annotation(keyword));
        let reference = others.shift_remove("$ref");
        let mut parts = vec![json!({ "$ref": reference }), Value::Object(others)];
        // A schema of its own keeps an `allOf` next to the reference apart.
        parts.retain(|part| part.as_object().is_some_and(|part| !part.is_empty()));
        *members = labels;
        members.insert("allOf".to_owned(), Value::Array(parts));
    }
}

/// Lets a reference to a part of the schema itself start at the document.
fn move_reference(members: &mut Map<String, Value>, is_current: bool) {
    let Some(pointer) = members.get("$ref").and_then(Value::as_str).and_then(target) else { return };
    let is_definition = DEFINITIONS.iter().any(|key| pointer.starts_with(&format!("/{key}/")));
    let start = if is_definition { "" } else { "/input" };
    let pointer = if is_current { pointer.replace("/prefixItems/", "/items/") } else { pointer };
    members.insert("$ref".to_owned(), reference(&format!("{start}{pointer}")).into());
}

/// Returns the schema of the arguments of a tool in a form that vendors accept: an object whose members are listed at its root. A
/// choice of objects becomes one object with the members of all, and the description contains the choice.
pub fn as_arguments(schema: &Value) -> Value {
    let Value::Object(mut root) = followed(schema, schema).clone() else { return schema.clone() };
    let definitions =
        DEFINITIONS.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone())));
    root.extend(definitions.collect::<Vec<_>>());
    let choices: Map<String, Value> = ["allOf", "anyOf", "oneOf", "not"]
        .into_iter()
        .filter_map(|keyword| Some((keyword.to_owned(), root.shift_remove(keyword)?)))
        .collect();
    let mut properties = match root.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for branch in choices.values().filter_map(Value::as_array).flatten() {
        let members = followed(schema, branch).get("properties").and_then(Value::as_object);
        members.into_iter().flatten().for_each(|(name, member)| add_choice(&mut properties, name, member));
    }
    if !choices.is_empty() {
        let about = root.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = format!("{about}\nThe arguments must match {}.", Value::Object(choices));
        root.insert("description".to_owned(), about.trim_start().into());
    }
    root.entry("type").or_insert_with(|| json!("object"));
    root.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(root)
}

/// Adds a member of one branch of a choice.
fn add_choice(properties: &mut Map<String, Value>, name: &str, schema: &Value) {
    match properties.get_mut(name) {
        None => {
            properties.insert(name.to_owned(), schema.clone());
        }
        Some(known) if known == schema => {}
        Some(known) => *known = json!({ "anyOf": [known.take(), schema] }),
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value as Tree;
    use cog_spec::{Format, Manifest, Tier};

    use super::*;
    use crate::{Contract, Rules};

    fn contract(schema: &Value) -> Contract {
        let manifest = Manifest::with_defaults("tool", Format::V25, Some(Tier::Exploration));
        Contract::compile(&ForeignSchema::read(schema).document, &Rules::from(&manifest)).unwrap()
    }

    /// Asserts which arguments a schema accepts.
    fn check(schema: Value, valid: &[&str], invalid: &[&str]) {
        let contract = contract(&schema);
        for (texts, is_valid) in [(valid, true), (invalid, false)] {
            for text in texts {
                let found = contract.check_input(Tree::parse(text).unwrap().node());
                assert_eq!(found.is_empty(), is_valid, "{schema} {text} {found:?}");
            }
        }
    }

    #[test]
    fn schema_is_read_in_its_draft() {
        let numbers = json!([{ "type": "number" }, { "type": "number" }]);
        let box_of = |schema: Value| json!({ "type": "object", "properties": { "box": schema } });
        let current = box_of(json!({ "type": "array", "prefixItems": numbers, "items": false }));
        check(current, &[r#"{"box":[1,2]}"#], &[r#"{"box":[1,2,3]}"#, r#"{"box":["a",2]}"#]);
        let mut old = box_of(json!({ "type": "array", "items": numbers, "additionalItems": false }));
        check(old.clone(), &[r#"{"box":[1,2]}"#], &[r#"{"box":[1,2,3]}"#, r#"{"box":["a",2]}"#]);
        old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        check(old, &[r#"{"box":[1,2]}"#], &[r#"{"box":[1,2,3]}"#]);
        check(
            json!({ "type": "object", "dependentRequired": { "a": ["b"] } }),
            &[r#"{"a":1,"b":2}"#, "{}"],
            &[r#"{"a":1}"#],
        );
        check(
            box_of(json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true })),
            &[r#"{"box":1}"#],
            &[r#"{"box":0}"#],
        );
        check(box_of(json!({ "contains": { "const": 1 }, "minContains": 0 })), &[r#"{"box":[2]}"#], &[]);
    }

    #[test]
    fn references_start_at_the_schema() {
        check(
            json!({ "type": "object", "properties": {
                "name": { "type": "string" },
                "children": { "type": "array", "items": { "$ref": "#" } },
                "other": { "$ref": "#/properties/name", "minLength": 2 },
                "items": { "$ref": "#/$defs/n" },
                "$ref": { "type": "integer" },
            }, "$defs": { "n": { "type": "array", "prefixItems": [{ "type": "null" }] } } }),
            &[r#"{"children":[{"name":"a"}],"other":"ab","items":[null],"$ref":1}"#],
            &[
                r#"{"children":[{"name":1}]}"#,
                r#"{"other":"a"}"#,
                r#"{"other":1}"#,
                r#"{"items":[1]}"#,
                r#"{"$ref":""}"#,
            ],
        );
    }

    #[test]
    fn what_cannot_be_checked_is_not_checked() {
        let schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {
            "in": { "type": "string", "pattern": "^P(?!$)", "description": "How long." },
            "a": { "$ref": "#/$defs/Nope" },
            "b": { "$ref": "https://example.com/schema.json", "type": "integer" },
            "pattern": { "type": "string" },
        } });
        check(
            schema.clone(),
            &[r#"{"in":"P","a":[],"b":1,"pattern":""}"#],
            &[r#"{"b":""}"#, r#"{"pattern":1}"#],
        );
        assert_eq!(
            ForeignSchema::read(&schema).sent,
            json!({ "type": "object", "properties": {
                "in": { "type": "string", "description": "How long. The tool checks it against a pattern." },
                "a": {},
                "b": { "type": "integer" },
                "pattern": { "type": "string" },
            } })
        );
    }
}
