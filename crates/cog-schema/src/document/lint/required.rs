//! Warnings about required fields that no schema of the same value defines.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::lint::Warnings;
use crate::document::{Parts, reach::Reached};
use crate::subschema::{children, is_in_place};
use crate::wording::quoted;

/// The fields that the specification defines for `meta`, `error` and `data`.
const META: &[&str] = &["confidence", "risk", "explain"];
const ERROR: &[&str] = &["code", "message", "recoverable", "suggestion", "details"];
const DATA: &[&str] = &["rationale", "extensions"];

/// Warns about names in `required` that are not defined in `properties`.
///
/// The schemas of one value, which `allOf`, `$ref` and the like connect, form a group: a name can be defined in any of
/// them. A group that lists no field, or has `patternProperties`, is skipped.
pub(super) fn check(warnings: &mut Warnings, document: &Value, parts: &Parts, reached: &Reached) {
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
