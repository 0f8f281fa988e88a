//! The replies of the scripted model.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::matching::merge;

/// The reply of the model.
///
/// `meta`, `data`, `error` change the base envelope, `json` replaces it, `protocol` is the wire protocol; docs/conformance-cases.md
/// lists the other members.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Reply(pub(crate) Map<String, Value>);

impl Reply {
    /// Returns the reply with its text.
    pub(crate) fn script(&self, base: &Value) -> Value {
        let own = ["protocol", "meta", "data", "error", "json"];
        let mut script = self.0.clone();
        script.retain(|key, _| !own.contains(&key.as_str()));
        let has_content = ["text", "raw", "status", "refusal"].iter().any(|key| script.contains_key(*key));
        if !has_content {
            script.insert("text".to_owned(), self.answer(base));
        }
        if script.contains_key("status") {
            script.entry("message").or_insert_with(|| json!("a scripted failure"));
        }
        Value::Object(script)
    }

    fn answer(&self, base: &Value) -> Value {
        if let Some(answer) = self.0.get("json") {
            return answer.clone();
        }
        let mut envelope = base.clone();
        if self.0.contains_key("error") {
            merge(&mut envelope, &json!({ "ok": false, "data": null }));
        }
        for key in ["meta", "data", "error"] {
            if let Some(change) = self.0.get(key) {
                merge(&mut envelope, &json!({ key: change }));
            }
        }
        envelope
    }
}
