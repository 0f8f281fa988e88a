//! Objects: which members are asked for.

use serde_json::{Map, Value, json};

use super::{Untold, Walk, allows_null, member_pointer, nullable};
use crate::project::account::LossKind;

impl Walk<'_> {
    pub(super) fn members(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        reported: &mut Map<String, Value>,
    ) -> Result<(), Untold> {
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
                        &format!("the member is not asked for: {reason}"),
                    );
                }
            }
        }
        if self.profile.requires_all {
            required = properties.keys().cloned().collect();
        }
        required.retain(|name| properties.contains_key(name));
        reported.insert("properties".to_owned(), Value::Object(properties));
        reported.insert("required".to_owned(), json!(required));
        self.further_members(members, at, reported)
    }

    /// An object of which nothing is named cannot be reported where objects must be closed.
    fn refuse_maps(&self, members: &Map<String, Value>) -> Result<(), Untold> {
        let names = members.get("properties").and_then(Value::as_object);
        let is_map = names.is_none_or(Map::is_empty)
            && members.get("additionalProperties") != Some(&Value::Bool(false));
        if self.profile.closes_objects && is_map {
            return Err("an object with members of any name".to_owned());
        }
        Ok(())
    }

    /// A member that may be left out; where none may, null stands for its absence.
    fn optional(&mut self, schema: Value, at: &str, name: &str) -> Value {
        if !self.profile.requires_all || allows_null(&schema) {
            return schema;
        }
        self.lose(&member_pointer(at, name), "required", LossKind::Projected, "optional is sent as nullable");
        nullable(schema)
    }

    fn further_members(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        reported: &mut Map<String, Value>,
    ) -> Result<(), Untold> {
        if members.contains_key("patternProperties") {
            self.lose(at, "patternProperties", LossKind::EnforcedLocally, "the dialect does not take it");
        }
        let further = members.get("additionalProperties");
        if self.profile.closes_objects {
            if further.is_some_and(|schema| *schema != Value::Bool(false)) {
                self.lose(
                    at,
                    "additionalProperties",
                    LossKind::Projected,
                    "only the named members are asked for",
                );
            }
            reported.insert("additionalProperties".to_owned(), Value::Bool(false));
            return Ok(());
        }
        let further = match further {
            Some(Value::Object(_)) => {
                self.schema(further.unwrap_or(&Value::Null), &format!("{at}/additionalProperties"))?
            }
            Some(other) => other.clone(),
            None => return Ok(()),
        };
        reported.insert("additionalProperties".to_owned(), further);
        Ok(())
    }
}

fn required(members: &Map<String, Value>) -> Vec<String> {
    let keys = members.get("required").and_then(Value::as_array).into_iter().flatten();
    keys.filter_map(Value::as_str).map(str::to_owned).collect()
}
