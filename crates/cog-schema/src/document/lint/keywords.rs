//! Warnings about keywords that have no effect, and about required fields that no schema of the same value defines.

use std::collections::HashMap;

use cog_json::Value as Tree;
use serde_json::{Map, Value};

use super::Warnings;
use crate::{
    document::{Parts, Reached},
    engine::repeated,
    finding::with_article,
    subschema::{ASSERTIONS, FORMATS, children, is_annotation, is_assertion, is_in_place},
    wording::quoted,
};

/// Keywords that identify a schema, and an annotation of later drafts.
const OTHER_KNOWN: [&str; 3] = ["$schema", "$id", "deprecated"];

/// Formats of OpenAPI, which describe a representation and restrict no value.
const OPENAPI_FORMATS: [&str; 7] = ["int32", "int64", "float", "double", "byte", "binary", "password"];

/// Keywords of other drafts and languages, and what to write in Draft-07.
const FOREIGN: [(&str, &str); 15] = [
    ("nullable", "Write `\"type\": [\"string\", \"null\"]`, with your type instead of `string`."),
    ("prefixItems", "In Draft-07, write the list of schemas as the value of `items`."),
    ("dependentRequired", "In Draft-07, write `dependencies`."),
    ("dependentSchemas", "In Draft-07, write `dependencies`."),
    ("unevaluatedProperties", "In Draft-07, write `additionalProperties` next to `properties`."),
    ("unevaluatedItems", "In Draft-07, write `additionalItems` next to a list of `items`."),
    ("minContains", "Draft-07 has only `contains`, for at least one item."),
    ("maxContains", "Draft-07 has only `contains`, for at least one item."),
    ("$anchor", "In Draft-07, write `\"$id\": \"#NAME\"`."),
    ("optional", "A field is optional unless the object lists it in `required`."),
    ("min", "Write `minimum`, `minLength` or `minItems`."),
    ("max", "Write `maximum`, `maxLength` or `maxItems`."),
    ("values", "Write `enum`."),
    ("regex", "Write `pattern`."),
    ("fields", "Write `properties`."),
];

/// Warns about the keywords of a schema that the check of a value ignores.
pub(super) fn check(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    if schema.contains_key("$ref") {
        return next_to_reference(warnings, pointer, schema);
    }
    for (keyword, value) in schema {
        if is_assertion(keyword) {
            unfit(warnings, pointer, schema, keyword);
        } else if !is_known(keyword) {
            unknown(warnings, &format!("{pointer}/{keyword}"), keyword);
        }
        if let (Some(name), "format") = (value.as_str(), keyword.as_str()) {
            format(warnings, &format!("{pointer}/format"), name);
        }
    }
}

fn is_known(keyword: &str) -> bool {
    is_assertion(keyword)
        || is_annotation(keyword)
        || OTHER_KNOWN.contains(&keyword)
        || keyword.starts_with("x-")
}

fn unknown(warnings: &mut Warnings, pointer: &str, keyword: &str) {
    let message = format!("unknown keyword {}: it has no effect", quoted(keyword));
    let foreign = FOREIGN.iter().find(|(name, _)| *name == keyword).map(|(_, help)| (*help).to_owned());
    let known = ASSERTIONS.iter().copied().chain(["description", "title", "default", "examples", "$defs"]);
    let help = foreign.or_else(|| warnings.did_you_mean(keyword, known));
    let help = help.unwrap_or_else(|| "Remove it, or start its name with `x-` if it is a note.".to_owned());
    warnings.add(pointer, message, help);
}

/// Warns about keywords next to `$ref`, which Draft-07 ignores.
fn next_to_reference(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    for keyword in schema.keys().filter(|keyword| *keyword != "$ref") {
        let at = format!("{pointer}/{keyword}");
        if is_assertion(keyword) {
            let message = format!("{} has no effect next to `$ref`", quoted(keyword));
            let help = "Write `\"allOf\": [{ \"$ref\": … }]` instead of `$ref`.";
            warnings.add(&at, message, help.to_owned());
        } else if !is_known(keyword) {
            unknown(warnings, &at, keyword);
        }
    }
}

fn format(warnings: &mut Warnings, pointer: &str, name: &str) {
    if FORMATS.contains(&name) || OPENAPI_FORMATS.contains(&name) {
        return;
    }
    let help = warnings.did_you_mean(name, FORMATS.iter().copied());
    let help = help.unwrap_or_else(|| "Use `pattern` to restrict the text.".to_owned());
    warnings.add(pointer, format!("unknown format {}: it is not checked", quoted(name)), help);
}

/// Warns about a keyword that does not apply to the types of its schema.
fn unfit(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, keyword: &str) {
    let Some(wanted) = types_of(keyword) else { return };
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    if types.is_empty() || types.iter().any(|name| wanted.contains(name)) {
        return;
    }
    let message = format!("{} has no effect: the type is `{}`", quoted(keyword), types.join("` or `"));
    let first = wanted.first().copied().unwrap_or_default();
    let help = format!("It restricts {}; correct the type or the keyword.", with_article(first));
    warnings.add(&format!("{pointer}/{keyword}"), message, help);
}

/// Returns the types that a keyword applies to; `None` for all.
fn types_of(keyword: &str) -> Option<&'static [&'static str]> {
    Some(match keyword {
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" => &["string"],
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["number", "integer"]
        }
        "items" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => &["array"],
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "propertyNames"
        | "required"
        | "minProperties"
        | "maxProperties" => &["object"],
        _ => return None,
    })
}

// Warnings about keywords that no value can satisfy together.

/// Keywords for a lower and an upper bound.
const RANGES: [[&str; 2]; 4] = [
    ["minimum", "maximum"],
    ["minLength", "maxLength"],
    ["minItems", "maxItems"],
    ["minProperties", "maxProperties"],
];

/// Warns about bounds that contradict each other, about values of another type or repeated ones, and about a constant or a
/// default that is not listed.
pub(super) fn check_values(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    for [low, high] in RANGES {
        let [min, max] = [low, high].map(|keyword| schema.get(keyword).and_then(Value::as_f64));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let message = format!("no value is allowed: {} is over {}", quoted(low), quoted(high));
            warnings.add(&format!("{pointer}/{low}"), message, "Exchange or correct the bounds.".to_owned());
        }
    }
    let listed = schema.get("enum").filter(|listed| listed.is_array()).map(Tree::from);
    check_list(warnings, &format!("{pointer}/enum"), schema, listed.as_ref());
    for (keyword, name) in [("const", "the constant"), ("default", "the default")] {
        let Some(value) = schema.get(keyword) else { continue };
        let pointer = format!("{pointer}/{keyword}");
        let tree = Tree::from(value);
        if listed.as_ref().is_some_and(|listed| listed.elements().all(|other| other != tree.node())) {
            let message = format!("{name} is not allowed: `enum` does not list it");
            warnings.add(&pointer, message, "Add it to `enum`, or correct it.".to_owned());
        } else {
            mistyped(warnings, &pointer, schema, value);
        }
    }
}

/// Warns about listed values of another type, and repeated ones.
fn check_list(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, listed: Option<&Tree>) {
    let repeated = listed.map(|listed| repeated(listed.node())).unwrap_or_default();
    let values = schema.get("enum").and_then(Value::as_array);
    for (index, value) in values.into_iter().flatten().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if repeated.binary_search(&index).is_err() {
            mistyped(warnings, &pointer, schema, value);
        } else {
            warnings.add(
                &pointer,
                "this value is listed before".to_owned(),
                "Remove or correct it.".to_owned(),
            );
        }
    }
}

fn mistyped(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, value: &Value) {
    let Some(types) = schema.get("type") else { return };
    let fits = match types {
        Value::String(name) => is_of(name, value),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_of(name, value)),
        _ => true,
    };
    if !fits {
        let message = "this value is never allowed: `type` excludes it".to_owned();
        warnings.add(pointer, message, "Correct the value or the type.".to_owned());
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        _ => value.is_number(),
    }
}

// Required fields that no schema of the same value defines.

/// The fields that the specification defines for `meta`, `error` and `data`.
const META: &[&str] = &["confidence", "risk", "explain"];
const ERROR: &[&str] = &["code", "message", "recoverable", "suggestion", "details"];
const DATA: &[&str] = &["rationale", "extensions"];

/// Warns about names in `required` that are not defined in `properties`.
///
/// The schemas of one value, which `allOf`, `$ref` and the like connect, form a group: a name can be defined in any of
/// them. A group that lists no field, or has `patternProperties`, is skipped.
pub(super) fn check_required(warnings: &mut Warnings, document: &Value, parts: &Parts, reached: &Reached) {
    let mut groups = Groups::find(document, reached);
    let fields = groups.fields(document, parts);
    for (index, pointer) in reached.schemas.iter().enumerate() {
        let root = groups.root(index);
        let Some(fields) = fields.get(root).filter(|fields| fields.can_be_checked()) else { continue };
        let required = document.pointer(pointer).and_then(|schema| schema.get("required")?.as_array());
        for (position, name) in required.into_iter().flatten().enumerate() {
            if let Some(name) = name.as_str().filter(|name| !fields.names.contains(name)) {
                undefined(warnings, &format!("{pointer}/required/{position}"), name, &fields.names);
            }
        }
    }
}

fn undefined(warnings: &mut Warnings, pointer: &str, name: &str, names: &[&str]) {
    let help = warnings.did_you_mean(name, names.iter().copied());
    let help = help.unwrap_or_else(|| "Define it in `properties`, or remove it from `required`.".to_owned());
    warnings.add(pointer, format!("required field {} is not defined in `properties`", quoted(name)), help);
}

/// The fields that a group of schemas defines.
#[derive(Debug, Clone, Default)]
struct FieldNames<'a> {
    names: Vec<&'a str>,
    /// Whether the author listed fields.
    are_listed: bool,
    has_patterns: bool,
}

impl FieldNames<'_> {
    const fn can_be_checked(&self) -> bool {
        self.are_listed && !self.has_patterns
    }
}

/// The schemas of a document by index, joined to groups: each schema points to another one of its group, or to itself.
struct Groups<'a> {
    pointers: &'a [String],
    indexes: HashMap<&'a str, usize>,
    parents: Vec<usize>,
}

impl<'a> Groups<'a> {
    fn find(document: &Value, reached: &'a Reached) -> Self {
        let pointers = &reached.schemas;
        let indexes = pointers.iter().enumerate().map(|(index, pointer)| (pointer.as_str(), index)).collect();
        let mut groups = Self { pointers, indexes, parents: (0..pointers.len()).collect() };
        for (index, pointer) in pointers.iter().enumerate() {
            if let Some(target) = reached.references.get(pointer) {
                groups.join(target, index);
            }
            let inner = document.pointer(pointer).map(children).unwrap_or_default();
            for child in inner.into_iter().filter(|child| is_in_place(child.keyword)) {
                groups.join(&format!("{pointer}{}", child.pointer), index);
            }
        }
        groups
    }

    /// Joins the group of a schema with the group of another one.
    fn join(&mut self, pointer: &str, other: usize) {
        let Some(index) = self.indexes.get(pointer).copied() else { return };
        let root = self.root(index);
        let other = self.root(other);
        if let Some(parent) = self.parents.get_mut(root) {
            *parent = other;
        }
    }

    /// Returns the schema that represents a group, and shortens the way to it.
    fn root(&mut self, mut index: usize) -> usize {
        while let Some(parent) = self.parents.get(index).copied().filter(|parent| *parent != index) {
            let grandparent = self.parents.get(parent).copied().unwrap_or(parent);
            if let Some(slot) = self.parents.get_mut(index) {
                *slot = grandparent;
            }
            index = parent;
        }
        index
    }

    /// Returns the fields of each group, at the index of the schema that represents it.
    fn fields<'d>(&mut self, document: &'d Value, parts: &Parts) -> Vec<FieldNames<'d>> {
        let mut fields = vec![FieldNames::default(); self.pointers.len()];
        for (index, pointer) in self.pointers.iter().enumerate() {
            let (root, Some(schema)) = (self.root(index), document.pointer(pointer)) else { continue };
            let Some(group) = fields.get_mut(root) else { continue };
            if let Some(own) = schema.get("properties").and_then(Value::as_object) {
                group.are_listed |= !own.is_empty();
                group.names.extend(own.keys().map(String::as_str));
            }
            group.has_patterns |= schema.get("patternProperties").is_some();
            group.names.extend(specified(parts, pointer));
        }
        fields
    }
}

/// Returns the fields that the specification defines for a part.
fn specified(parts: &Parts, pointer: &str) -> &'static [&'static str] {
    match Some(pointer) {
        part if part == parts.meta.as_deref() => META,
        part if part == parts.error.as_deref() => ERROR,
        part if part == parts.data.as_deref() => DATA,
        _ => &[],
    }
}
