//! Projects choices.

use serde_json::{Map, Value};

use super::{Unsupported, Walk};
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
        let mut others = members.clone();
        let keyword = if members.contains_key("anyOf") { "anyOf" } else { "oneOf" };
        others.shift_remove(keyword);
        let mut projected = Map::new();
        for keyword in ["title", "description"] {
            if let Some(value) = others.shift_remove(keyword) {
                projected.insert(keyword.to_owned(), value);
            }
        }
        if keyword == "oneOf" {
            self.lose(
                at,
                "oneOf",
                LossKind::Projected,
                "sent as `anyOf`; the runtime checks that exactly one matches",
            );
        }
        let mut schemas = Vec::new();
        let mut refused = None;
        for (index, branch) in branches.iter().enumerate() {
            match self.branch(&others, branch, &format!("{at}/{keyword}/{index}")) {
                Ok(schema) => schemas.push(schema),
                Err(reason) => {
                    self.lose(
                        at,
                        keyword,
                        LossKind::EnforcedLocally,
                        &format!("branch {index} is not sent: {reason}"),
                    );
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

    fn branch(
        &mut self,
        others: &Map<String, Value>,
        branch: &Value,
        at: &str,
    ) -> Result<Value, Unsupported> {
        if others.is_empty() {
            return self.schema(branch, at);
        }
        let Value::Object(mut merged) = flattened(self.document, branch, at, &mut self.lost) else {
            return self.schema(branch, at);
        };
        merge(&mut merged, others, at, &mut self.lost);
        self.schema(&Value::Object(merged), at)
    }
}
