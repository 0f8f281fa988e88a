//! Projects choices.

use serde_json::{Map, Value};

use super::{
    Unsupported, Walk, allows_null, nullable,
    types::{Count, is_label, is_union},
};
use crate::project::{
    LossKind,
    defs::{flattened, merge},
};

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
                    self.lose(at, keyword, LossKind::EnforcedLocally, &text);
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
