//! Projects the types of values.

use serde_json::{Map, Value, json};

use super::{Unsupported, Walk};
use crate::{dialect::ALL_TYPES, project::loss::LossKind, wording::type_name};

impl Walk<'_> {
    /// Returns the types of a schema that allows a container and other types, unless it lists its values.
    pub(super) fn mixed_types(members: &Map<String, Value>) -> Option<&[Value]> {
        let kinds = members.get("type")?.as_array().filter(|kinds| kinds.len() > 1)?;
        (values(members).is_none() && kinds.iter().any(is_container)).then_some(kinds)
    }

    /// Returns the type as written, that of the listed values, or the types that the keywords imply.
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

    /// Projects a schema of several types, of which some are containers: each as a branch with its own keywords, because
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
        let branches = branches.map(|kind| (branch(members, kind), at.to_owned())).collect();
        self.choice(branches, members, at, "type")
    }
}

/// Returns a schema for one of its types.
fn branch(members: &Map<String, Value>, kind: Value) -> Value {
    let allows = |name: &str| match &kind {
        Value::Array(kinds) => kinds.iter().any(|one| is_kind(one, name)),
        one => is_kind(one, name),
    };
    let has_effect = |keyword: &str| implied(keyword).is_none_or(&allows);
    let own = members.iter().filter(|(keyword, _)| has_effect(keyword) && !is_label(keyword));
    let mut branch: Map<String, Value> =
        own.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
    branch.insert("type".to_owned(), kind);
    Value::Object(branch)
}

fn is_kind(kind: &Value, name: &str) -> bool {
    kind == name || (kind == "integer" && name == "number")
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
