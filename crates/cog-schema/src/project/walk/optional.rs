//! Keeps the number of optional members within the limit of a dialect.

use serde_json::{Map, Value};

use super::limits::{Count, is_union};
use super::{Walk, allows_null, nullable};
use crate::project::loss::LossKind;

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
            let (changed, max) = (excess.changed, limits.optional_members);
            let reason =
                format!("{changed} optional members are sent as nullable; at most {max} can be optional");
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
