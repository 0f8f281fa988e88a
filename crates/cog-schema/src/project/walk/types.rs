//! Projects the types of values, and choices.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Unsupported, Walk, allows_null, nullable};
use crate::{
    dialect::{ALL_TYPES, LARGE_ENUM, Limits},
    project::{
        LossKind,
        defs::{flattened, merge},
    },
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
        self.narrow(at, "type", LossKind::Projected, &reason);
        one_or_list(&types)
    }

    /// Returns a schema that allows everything.
    pub(super) fn anything(&mut self, at: &str) -> Value {
        json!({ "type": self.any_type(at) })
    }

    fn any_type(&mut self, at: &str) -> Value {
        let types = self.profile.any;
        if types.len() < ALL_TYPES.len() {
            self.narrow(at, "type", LossKind::Projected, "any value is allowed; only scalars are requested");
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

// Choices.

/// A branch of a choice.
pub(super) struct Branch {
    pub(super) schema: Value,
    /// Its pointer in the document.
    pub(super) at: String,
}

impl Walk<'_> {
    /// Projects a choice. Its other keywords are merged into each branch.
    pub(super) fn alternatives(
        &mut self,
        members: &Map<String, Value>,
        branches: &[Value],
        at: &str,
    ) -> Result<Value, Unsupported> {
        let keyword = if members.contains_key("anyOf") { "anyOf" } else { "oneOf" };
        if keyword == "oneOf" {
            let reason = "sent as `anyOf`; the runtime checks that exactly one matches";
            self.lose(at, keyword, LossKind::Projected, reason);
        }
        let mut others = members.clone();
        others.retain(|name, _| name != keyword && !is_label(name));
        let mut merged = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{at}/{keyword}/{index}");
            merged.push(Branch { schema: self.merged(&others, branch, &at), at });
        }
        self.choice(merged, members, at, keyword)
    }

    /// Projects the branches of a choice. A branch that the dialect cannot express is omitted.
    pub(super) fn choice(
        &mut self,
        branches: Vec<Branch>,
        members: &Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Result<Value, Unsupported> {
        let labels = members.iter().filter(|(name, _)| is_label(name));
        let mut projected: Map<String, Value> =
            labels.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut schemas = Vec::new();
        let mut refused = None;
        for (index, branch) in branches.iter().enumerate() {
            match self.schema(&branch.schema, &branch.at) {
                Ok(schema) => schemas.push(schema),
                Err(reason) => {
                    let text = format!("branch {index} is not sent: {reason}");
                    self.narrow(at, keyword, LossKind::EnforcedLocally, &text);
                    refused = Some(reason);
                }
            }
        }
        if schemas.is_empty() {
            return Err(refused.unwrap_or_else(|| "a choice without branches".to_owned()));
        }
        projected.insert("anyOf".to_owned(), Value::Array(schemas));
        Ok(Value::Object(projected))
    }

    /// Returns a branch with the keywords next to the choice.
    fn merged(&mut self, others: &Map<String, Value>, branch: &Value, at: &str) -> Value {
        if others.is_empty() {
            return branch.clone();
        }
        match flattened(self.document, branch, at, &mut self.lost) {
            Value::Object(mut merged) => {
                merge(&mut merged, others, at, &mut self.lost);
                Value::Object(merged)
            }
            // Nothing else applies next to `false`.
            Value::Bool(true) => Value::Object(others.clone()),
            branch => branch,
        }
    }
}

// Keeps the number of optional members within the limit of a dialect.

impl Walk<'_> {
    /// Sends optional members as nullable, as many as exceed the limit of the dialect and as its limit of unions allows.
    pub(super) fn require_excess(&mut self, root: &mut Value) {
        let limits = &self.profile.limits;
        let count = Count::new(root);
        let mut excess = Excess {
            members: count.optional.saturating_sub(limits.optional_members),
            unions: limits.union_members.saturating_sub(count.unions),
            changed: 0,
        };
        if excess.members == 0 {
            return;
        }
        excess.schema(root);
        if excess.changed > 0 {
            let reason = format!(
                "{} optional members are sent as nullable; at most {} can be optional",
                excess.changed, limits.optional_members
            );
            self.lose("", "required", LossKind::Projected, &reason);
        }
    }
}

/// The optional members that are still to be changed.
struct Excess {
    members: usize,
    /// The number of members that can still become unions.
    unions: usize,
    changed: usize,
}

impl Excess {
    fn schema(&mut self, schema: &mut Value) {
        let Some(members) = schema.as_object_mut() else { return };
        self.properties(members);
        for keyword in ["anyOf", "items", "additionalProperties", "$defs"] {
            match members.get_mut(keyword) {
                Some(Value::Array(branches)) => branches.iter_mut().for_each(|branch| self.schema(branch)),
                Some(Value::Object(all)) if keyword == "$defs" => {
                    all.values_mut().for_each(|schema| self.schema(schema));
                }
                Some(schema) => self.schema(schema),
                None => {}
            }
        }
    }

    fn properties(&mut self, members: &mut Map<String, Value>) {
        let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut all = required.clone();
        for (name, schema) in
            members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
        {
            self.schema(schema);
            if !required.iter().any(|key| key == name) && self.require(schema) {
                all.push(Value::from(name.as_str()));
            }
        }
        if all.len() > required.len() {
            members.insert("required".to_owned(), Value::Array(all));
        }
    }

    /// Makes a schema nullable, if its member has to be required and can be a union.
    fn require(&mut self, schema: &mut Value) -> bool {
        let cost = usize::from(!is_union(schema));
        if self.members == 0 || self.unions < cost {
            return false;
        }
        if !allows_null(schema) {
            *schema = nullable(schema.take());
        }
        self.members -= 1;
        self.unions -= cost;
        self.changed += 1;
        true
    }
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
