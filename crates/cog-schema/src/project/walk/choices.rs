//! Projects choices.

use serde_json::{Map, Value};

use super::{Unsupported, Walk, types::is_label};
use crate::project::loss::LossKind;
use crate::project::merge::{flattened, merge};

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
        let is_other = |name: &&String| *name != keyword && !is_label(name);
        let others = members.iter().filter(|(name, _)| is_other(name));
        let others: Map<String, Value> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        let branch = |(index, branch)| {
            let at = format!("{at}/{keyword}/{index}");
            (self.merged(&others, branch, &at), at)
        };
        let branches = branches.iter().enumerate().map(branch).collect();
        self.choice(branches, members, at, keyword)
    }

    /// Projects the branches of a choice, each with its pointer. A branch that the dialect cannot express is omitted.
    pub(super) fn choice(
        &mut self,
        branches: Vec<(Value, String)>,
        members: &Map<String, Value>,
        at: &str,
        keyword: &str,
    ) -> Result<Value, Unsupported> {
        let labels = members.iter().filter(|(name, _)| is_label(name));
        let mut projected: Map<String, Value> =
            labels.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut schemas = Vec::new();
        let mut refused = None;
        for (index, (branch, branch_at)) in branches.iter().enumerate() {
            match self.schema(branch, branch_at) {
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
