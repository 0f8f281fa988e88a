//! Projects objects and arrays.

use serde_json::{Map, Value, json};

use super::{Unsupported, Walk, allows_null, member_pointer, nullable};
use crate::dialect::{ALL_TYPES, Tuples};
use crate::project::{LossKind, describe};
use crate::subschema::names;

impl Walk<'_> {
    pub(super) fn members(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) -> Result<(), Unsupported> {
        self.refuse_maps(members)?;
        let mut required: Vec<String> = names(members.get("required")).map(str::to_owned).collect();
        let mut properties = Map::new();
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.contains(name);
            match self.schema(schema, &member_pointer(at, name)) {
                Ok(schema) => {
                    let schema = if is_required { schema } else { self.optional(schema, at, name) };
                    properties.insert(name.clone(), schema);
                }
                Err(reason) if is_required => return Err(reason),
                Err(reason) => {
                    let pointer = member_pointer(at, name);
                    let reason = format!("the member is not sent: {reason}");
                    self.narrow(&pointer, "", LossKind::EnforcedLocally, &reason);
                }
            }
        }
        for name in &required {
            if !properties.contains_key(name) {
                properties.insert(name.clone(), self.undefined_member(members, at, name)?);
            }
        }
        if self.profile.requires_all {
            required = properties.keys().cloned().collect();
        }
        // Some vendors reject an object schema with an empty list of members.
        if self.profile.closes_objects || !properties.is_empty() {
            projected.insert("properties".to_owned(), Value::Object(properties));
        }
        if self.profile.requires_all || !required.is_empty() {
            projected.insert("required".to_owned(), json!(required));
        }
        self.additional_members(members, at, projected)
    }

    /// Returns the schema of a required member that the schema does not define.
    fn undefined_member(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        name: &str,
    ) -> Result<Value, Unsupported> {
        let has_patterns = members.contains_key("patternProperties");
        match members.get("additionalProperties").filter(|_| !has_patterns) {
            Some(Value::Bool(false)) => Err(format!("`{name}` is required, but not allowed")),
            Some(schema @ Value::Object(_)) => self.schema(schema, &format!("{at}/additionalProperties")),
            _ => {
                let pointer = member_pointer(at, name);
                let reason = "the member is required, but the schema does not define it";
                self.lose(&pointer, "required", LossKind::Projected, reason);
                Ok(self.anything(&pointer))
            }
        }
    }

    /// Refuses objects without named members if objects must be closed.
    fn refuse_maps(&self, members: &Map<String, Value>) -> Result<(), Unsupported> {
        let names = members.get("properties").and_then(Value::as_object);
        let is_map = names.is_none_or(Map::is_empty)
            && members.get("additionalProperties") != Some(&Value::Bool(false));
        if self.profile.closes_objects && is_map {
            return Err("an object with members of any name".to_owned());
        }
        Ok(())
    }

    /// Returns the schema of an optional member; it is nullable if every member is required.
    fn optional(&mut self, schema: Value, at: &str, name: &str) -> Value {
        if !self.profile.requires_all {
            return schema;
        }
        if allows_null(&schema) {
            // A null is a value here, and may mean something else than no value.
            let default = self.document.pointer(&member_pointer(at, name)).and_then(|own| own.get("default"));
            self.is_narrower |= default != Some(&Value::Null);
            return schema;
        }
        self.lose(&member_pointer(at, name), "required", LossKind::Projected, "optional is sent as nullable");
        nullable(schema)
    }

    fn additional_members(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) -> Result<(), Unsupported> {
        let additional = members.get("additionalProperties");
        let patterns = members.get("patternProperties");
        if self.profile.closes_objects {
            let lost = patterns.map(|_| "patternProperties").into_iter();
            let is_open = additional.is_some_and(|schema| *schema != Value::Bool(false));
            for keyword in lost.chain(is_open.then_some("additionalProperties")) {
                self.narrow(at, keyword, LossKind::Projected, "only the named members are sent");
            }
            projected.insert("additionalProperties".to_owned(), Value::Bool(false));
            return Ok(());
        }
        if let Some(patterns) = patterns {
            self.lose(at, "patternProperties", LossKind::EnforcedLocally, "the dialect does not support it");
            describe::add_one("patternProperties", patterns, projected);
            if additional.is_some_and(|schema| *schema != Value::Bool(true)) {
                // It does not apply to the members with these names.
                let reason = "it depends on `patternProperties`, which the dialect does not support";
                self.lose(at, "additionalProperties", LossKind::EnforcedLocally, reason);
            }
            return Ok(());
        }
        let additional = match additional {
            Some(schema @ Value::Object(_)) => self.schema(schema, &format!("{at}/additionalProperties"))?,
            Some(other) => other.clone(),
            None => return Ok(()),
        };
        projected.insert("additionalProperties".to_owned(), additional);
        Ok(())
    }

    pub(super) fn items(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) -> Result<(), Unsupported> {
        let items = match members.get("items") {
            Some(Value::Array(tuple)) => return self.tuple(tuple, members, at, projected),
            Some(schema) => self.schema(schema, &format!("{at}/items"))?,
            None if self.needs_items(projected) => self.anything(at),
            None => return Ok(()),
        };
        projected.insert("items".to_owned(), items);
        Ok(())
    }

    /// Returns whether an array needs `items`: where any value cannot be an array, and for the limits of its length.
    fn needs_items(&self, projected: &Map<String, Value>) -> bool {
        let has_limit = ["minItems", "maxItems"].iter().any(|keyword| projected.contains_key(*keyword));
        has_limit || self.profile.any != ALL_TYPES
    }

    /// Projects an array whose positions have schemas.
    fn tuple(
        &mut self,
        tuple: &[Value],
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) -> Result<(), Unsupported> {
        let mut schemas = Vec::new();
        for (index, schema) in tuple.iter().enumerate() {
            schemas.push(self.schema(schema, &format!("{at}/items/{index}"))?);
        }
        let further = match members.get("additionalItems") {
            Some(schema @ Value::Object(_)) => Some(self.schema(schema, &format!("{at}/additionalItems"))?),
            _ => None,
        };
        let lengths = Lengths::new(members, tuple.len());
        match self.profile.tuples {
            Tuples::PrefixItems => {
                projected.insert("prefixItems".to_owned(), Value::Array(schemas));
                projected.extend(further.map(|schema| ("items".to_owned(), schema)));
                projected.extend(lengths.max.map(|max| ("maxItems".to_owned(), Value::from(max))));
            }
            Tuples::ExactItems if lengths.allow(tuple.len()) => {
                projected.insert("items".to_owned(), Value::Array(schemas));
                if !lengths.allow_only(tuple.len()) {
                    let reason = format!("sent as a list of exactly {} items", tuple.len());
                    self.narrow(at, "items", LossKind::Projected, &reason);
                }
            }
            Tuples::ExactItems | Tuples::AnyOf => {
                schemas.extend(further);
                let is_open =
                    members.get("additionalItems").is_none_or(|further| *further == Value::Bool(true));
                self.is_narrower |= is_open && lengths.max.is_none_or(|max| max > tuple.len());
                self.any_of_items(schemas, members, at, projected);
            }
        }
        Ok(())
    }

    /// Projects a tuple as an array of any of its items.
    fn any_of_items(
        &mut self,
        mut schemas: Vec<Value>,
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) {
        let reason =
            "sent as a list of any of its items; their positions, and items of other schemas, are not sent";
        self.lose(at, "items", LossKind::Projected, reason);
        describe::add_one("items", members.get("items").unwrap_or(&Value::Null), projected);
        schemas.dedup();
        let items = match schemas.as_slice() {
            [only] => only.clone(),
            _ => json!({ "anyOf": schemas }),
        };
        projected.insert("items".to_owned(), items);
    }
}

/// The lengths of an array whose positions have schemas.
struct Lengths {
    min: usize,
    max: Option<usize>,
}

impl Lengths {
    fn new(members: &Map<String, Value>, positions: usize) -> Self {
        let [min, max] = ["minItems", "maxItems"]
            .map(|keyword| members.get(keyword)?.as_u64().and_then(|size| usize::try_from(size).ok()));
        let is_closed = members.get("additionalItems") == Some(&Value::Bool(false));
        let max = max.into_iter().chain(is_closed.then_some(positions)).min();
        Self { min: min.unwrap_or(0), max }
    }

    fn allow(&self, length: usize) -> bool {
        self.min <= length && self.max.is_none_or(|max| length <= max)
    }

    fn allow_only(&self, length: usize) -> bool {
        self.min == length && self.max == Some(length)
    }
}
