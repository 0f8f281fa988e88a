//! The modules of cases.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::matching::merge;

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

/// Returns a text as it is, and any other value as JSON.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => format!("{other:#}\n"),
    }
}
