//! Projects objects and arrays.

use serde_json::{Map, Value, json};

use super::{Unsupported, Walk, allows_null, member_pointer, nullable};
use crate::project::describe;
use crate::project::loss::LossKind;

impl Walk<'_> {
    pub(super) fn members(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        projected: &mut Map<String, Value>,
    ) -> Result<(), Unsupported> {
        self.refuse_maps(members)?;
        let mut required: Vec<String> = required(members);
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
                    self.lose(
                        &pointer,
                        "",
                        LossKind::EnforcedLocally,
                        &format!("the member is not sent: {reason}"),
                    );
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
        match members.get("additionalProperties") {
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
        if !self.profile.requires_all || allows_null(&schema) {
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
        if let Some(patterns) = members.get("patternProperties") {
            self.lose(at, "patternProperties", LossKind::EnforcedLocally, "the dialect does not support it");
            if !self.profile.closes_objects {
                describe::add_one("patternProperties", patterns, projected);
            }
        }
        let additional = members.get("additionalProperties");
        if self.profile.closes_objects {
            if additional.is_some_and(|schema| *schema != Value::Bool(false)) {
                self.lose(at, "additionalProperties", LossKind::Projected, "only the named members are sent");
            }
            projected.insert("additionalProperties".to_owned(), Value::Bool(false));
            return Ok(());
        }
        let additional = match additional {
            Some(Value::Object(_)) => {
                self.schema(additional.unwrap_or(&Value::Null), &format!("{at}/additionalProperties"))?
            }
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
            Some(positions @ Value::Array(tuple)) => {
                describe::add_one("items", positions, projected);
                self.tuple(tuple, members, at)?
            }
            Some(schema) => self.schema(schema, &format!("{at}/items"))?,
            None if self.profile.types_all => self.anything(at),
            None => return Ok(()),
        };
        projected.insert("items".to_owned(), items);
        Ok(())
    }

    /// Projects a tuple as an array of any of its items.
    fn tuple(
        &mut self,
        tuple: &[Value],
        members: &Map<String, Value>,
        at: &str,
    ) -> Result<Value, Unsupported> {
        self.lose(at, "items", LossKind::Projected, "the positions of the items are not sent");
        let mut schemas = Vec::new();
        for (index, schema) in tuple.iter().enumerate() {
            schemas.push(self.schema(schema, &format!("{at}/items/{index}"))?);
        }
        if let Some(schema @ Value::Object(_)) = members.get("additionalItems") {
            schemas.push(self.schema(schema, &format!("{at}/additionalItems"))?);
        }
        schemas.dedup();
        match schemas.as_slice() {
            [only] => Ok(only.clone()),
            _ => Ok(json!({ "anyOf": schemas })),
        }
    }
}

fn required(members: &Map<String, Value>) -> Vec<String> {
    let keys = members.get("required").and_then(Value::as_array).into_iter().flatten();
    keys.filter_map(Value::as_str).map(str::to_owned).collect()
}
