//! The module and the reply that every case changes, and the shorthand for long strings.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::matching::merge;

/// The base of all cases: `conformance/base.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    /// The module that a case's `module` changes.
    pub(crate) module: ModuleParts,
    /// The envelope that a case's `reply` changes.
    pub(crate) reply: Value,
}

/// The parts of a module in v2 form. As a change, each part is merged into the base (null removes a key).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleParts {
    /// `module.yaml`.
    #[serde(default)]
    manifest: Map<String, Value>,
    /// `schema.json`.
    #[serde(default)]
    pub(crate) schema: Value,
    /// `prompt.md`.
    pub(crate) prompt: Option<String>,
    /// Golden tests and other files, by their path in the module.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Value>,
}

impl ModuleParts {
    /// Applies the changes to this module.
    pub(crate) fn changed(&self, changes: &ModuleParts) -> ModuleParts {
        let mut manifest = Value::Object(self.manifest.clone());
        merge(&mut manifest, &Value::Object(changes.manifest.clone()));
        let mut schema = self.schema.clone();
        if !changes.schema.is_null() {
            merge(&mut schema, &changes.schema);
        }
        ModuleParts {
            manifest: manifest.as_object().cloned().unwrap_or_default(),
            schema,
            prompt: changes.prompt.clone().or_else(|| self.prompt.clone()),
            files: changes.files.clone(),
        }
    }

    /// Returns whether the manifest names tier exec.
    pub(crate) fn is_exec(&self) -> bool {
        self.manifest.get("tier").is_some_and(|tier| tier == "exec")
    }

    /// Renames the module.
    pub(crate) fn named(mut self, name: &str) -> ModuleParts {
        self.manifest.insert("name".to_owned(), Value::from(name));
        self
    }

    /// Returns `module.yaml`: one line of YAML for each key.
    pub(crate) fn manifest(&self) -> String {
        self.manifest.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }
}

/// Returns a string as it is, and any other value as JSON.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => format!("{other:#}\n"),
    }
}

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

/// Expands every `{"$repeat": [text, times]}` and `{"$join": [strings]}` in a value.
pub(crate) fn expanded(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(expanded).collect(),
        Value::Object(members) => {
            let members: serde_json::Map<_, _> =
                members.into_iter().map(|(key, member)| (key, expanded(member))).collect();
            let text =
                members.get("$repeat").and_then(repeated).or_else(|| members.get("$join").and_then(joined));
            text.map_or(Value::Object(members), Value::String)
        }
        other => other,
    }
}

fn repeated(repeat: &Value) -> Option<String> {
    let times = usize::try_from(repeat.get(1)?.as_u64()?).ok()?;
    Some(repeat.get(0)?.as_str()?.repeat(times))
}

fn joined(parts: &Value) -> Option<String> {
    parts.as_array()?.iter().map(Value::as_str).collect()
}
