//! Projects the types of values.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Unsupported, Walk, choices::Branch};
use crate::{
    dialect::{ALL_TYPES, LARGE_ENUM, Limits},
    project::LossKind,
    subschema::names,
    wording::type_name,
};

impl Walk<'_> {
    /// Returns the types of a schema that allows a container and other types, unless it lists its values.
    pub(super) fn mixed_types(members: &Map<String, Value>) -> Option<&[Value]> {
        let kinds = members.get("type")?.as_array().filter(|kinds| kinds.len() > 1)?;
        (values(members).is_none() && kinds.iter().any(is_container)).then_some(kinds)
    }

    /// Returns the type as written, the type of the listed values, or the types that the keywords imply.
    pub(super) fn kind(&mut self, members: &Map<String, Value>, at: &str) -> Value {
        if let Some(kind) = members.get("type") {
            return kind.clone();
        }
        if let Some(values) = values(members) {
            return types_of(&values);
        }
        let mut types: Vec<&str> = members.keys().filter_map(|keyword| implied(keyword)).collect();
        types.sort_unstable();
        types.dedup();
        if types.is_empty() {
            return self.any_type(at);
        }
        let reason = format!("values of every type are allowed; only {} is requested", types.join(" or "));
        self.lose(at, "type", LossKind::Projected, &reason);
        one_or_list(&types)
    }

    /// Returns a schema that allows everything.
    pub(super) fn anything(&mut self, at: &str) -> Value {
        json!({ "type": self.any_type(at) })
    }

    fn any_type(&mut self, at: &str) -> Value {
        let types = self.profile.any;
        if types.len() < ALL_TYPES.len() {
            self.lose(at, "type", LossKind::Projected, "any value is allowed; only scalars are requested");
        }
        json!(types)
    }

    /// Projects a schema of several types that include containers: each type as a branch with its own keywords, because
    /// some vendors reject the keywords of objects next to another type.
    pub(super) fn types(
        &mut self,
        members: &Map<String, Value>,
        types: &[Value],
        at: &str,
    ) -> Result<Value, Unsupported> {
        let (containers, scalars): (Vec<&Value>, Vec<&Value>) =
            types.iter().partition(|kind| is_container(kind));
        let scalars: Vec<&str> = scalars.into_iter().filter_map(Value::as_str).collect();
        let scalars = Some(scalars).filter(|scalars| !scalars.is_empty());
        let branches = containers.into_iter().cloned().chain(scalars.map(|scalars| one_or_list(&scalars)));
        let branches = branches.map(|kind| Branch { schema: branch(members, kind), at: at.to_owned() });
        self.choice(branches.collect(), members, at, "type")
    }
}

/// Returns a schema for one of its types.
fn branch(members: &Map<String, Value>, kind: Value) -> Value {
    let mut branch = members.clone();
    branch.retain(|keyword, _| {
        !is_label(keyword) && implied(keyword).is_none_or(|name| includes_type(&kind, name))
    });
    branch.insert("type".to_owned(), kind);
    Value::Object(branch)
}

/// Returns whether the value of `type` has this type, in a list or alone.
fn includes_type(kind: &Value, name: &str) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|one| includes_type(one, name)),
        one => one == name || (one == "integer" && name == "number"),
    }
}

/// Returns whether a keyword describes the complete value, so that it stays next to a choice.
pub(super) fn is_label(keyword: &str) -> bool {
    matches!(keyword, "title" | "description")
}

fn is_container(kind: &Value) -> bool {
    kind == "object" || kind == "array"
}

/// Returns the type of the values that a keyword restricts; none if it restricts values of every type.
fn implied(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependencies" => "object",
        "items" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => "array",
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => "number",
        _ => return None,
    })
}

fn values(members: &Map<String, Value>) -> Option<Vec<Value>> {
    match members.get("enum") {
        Some(Value::Array(values)) => Some(values.clone()),
        _ => members.get("const").map(|value| vec![value.clone()]),
    }
}

fn types_of(values: &[Value]) -> Value {
    let mut types: Vec<&str> = Vec::new();
    for value in values {
        let name = type_name(value);
        if !types.contains(&name) {
            types.push(name);
        }
    }
    one_or_list(&types)
}

fn one_or_list(types: &[&str]) -> Value {
    match types {
        [only] => Value::from(*only),
        _ => json!(types),
    }
}

// Checks the size of a projected schema.

/// The counts of a complete schema.
#[derive(Debug, Default)]
pub(super) struct Count {
    members: usize,
    pub(super) optional: usize,
    pub(super) unions: usize,
    depth: usize,
    values: usize,
    text: usize,
    large_enum_text: usize,
}

/// Checks that a schema is within the limits of its dialect; returns the reason if it is not.
pub(super) fn check(schema: &Value, limits: &Limits) -> Result<(), String> {
    let count = Count::new(schema);
    let over = [
        ("members", count.members, limits.members),
        ("optional members", count.optional, limits.optional_members),
        ("members of several types", count.unions, limits.union_members),
        ("levels of objects", count.depth, limits.depth),
        ("enum values", count.values, limits.enum_values),
        ("characters of names and values", count.text, limits.text),
        ("characters in an enum of over 250 values", count.large_enum_text, limits.large_enum_text),
    ]
    .into_iter()
    .find(|(_, found, max)| found > max);
    match over {
        Some((unit, found, max)) => Err(format!("{found} {unit}; the maximum is {max}")),
        None => Ok(()),
    }
}

/// Returns whether a member accepts several types.
pub(super) fn is_union(schema: &Value) -> bool {
    schema.get("anyOf").is_some() || schema.get("type").is_some_and(Value::is_array)
}

impl Count {
    /// Counts a complete schema.
    pub(super) fn new(schema: &Value) -> Self {
        let mut count = Self::default();
        count.schema(schema, 0);
        count
    }

    /// Counts a schema. Definitions are counted once, in `$defs`, so recursion ends.
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Some(members) = schema.as_object() else { return };
        let mut depth = depth;
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            depth += 1;
            self.depth = self.depth.max(depth);
            self.properties(properties, members, depth);
        }
        self.values(members);
        let lists =
            ["anyOf", "prefixItems"].into_iter().filter_map(|keyword| members.get(keyword)?.as_array());
        for branch in lists.flatten() {
            self.schema(branch, depth);
        }
        for inner in ["items", "additionalProperties"].into_iter().filter_map(|keyword| members.get(keyword))
        {
            self.schema(inner, depth);
        }
        for (name, schema) in members.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            self.text += name.chars().count();
            self.schema(schema, 0);
        }
    }

    fn values(&mut self, members: &Map<String, Value>) {
        let listed = members.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text = listed.iter().map(text_length).sum();
        let constant = members.get("const");
        self.values += listed.len() + usize::from(constant.is_some());
        self.text += text + constant.map_or(0, text_length);
        if listed.len() > LARGE_ENUM {
            self.large_enum_text = self.large_enum_text.max(text);
        }
    }

    fn properties(&mut self, properties: &Map<String, Value>, members: &Map<String, Value>, depth: usize) {
        let required: HashSet<&str> = names(members.get("required")).collect();
        for (name, schema) in properties {
            self.members += 1;
            self.text += name.chars().count();
            self.optional += usize::from(!required.contains(name.as_str()));
            self.unions += usize::from(is_union(schema));
            self.schema(schema, depth);
        }
    }
}

/// Returns the number of characters of a string; 0 for other values.
fn text_length(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_a_provider_limits_is_counted() {
        let count = Count::new(&json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": { "type": "string", "enum": ["x", "yy"] },
                "bb": { "type": ["string", "null"] },
                "c": { "type": "object", "properties": { "d": { "type": "string", "const": "zzz" } } },
            },
            "$defs": { "Name": { "type": "integer", "enum": [1, 2, 3] } },
        }));
        assert_eq!((count.members, count.optional, count.unions), (4, 3, 1));
        assert_eq!((count.depth, count.values, count.text), (2, 6, 15));
        assert_eq!(count.large_enum_text, 0);
    }
}
