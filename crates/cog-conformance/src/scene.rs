//! The state that the steps of a case share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::lines::comparable;
use crate::model::Model;
use crate::reply::Reply;
use crate::server::Server;
use crate::site::Site;

/// The directory, the model, the server, and the values that earlier steps stored.
pub(crate) struct Scene<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) replies: &'a [Reply],
    pub(crate) base: &'a Value,
    /// The model of the server, or of the step.
    pub(crate) model: Option<Model>,
    pub(crate) server: Option<Server>,
    pub(crate) site: Option<Site>,
    /// The last request of the steps so far.
    pub(crate) earlier: Option<Value>,
    /// The chunks of the last step that had any.
    pub(crate) chunks: Vec<Value>,
    /// The stored values, by name.
    pub(crate) kept: BTreeMap<String, Value>,
}

impl<'a> Scene<'a> {
    /// Creates the scene from a directory, the case's replies, and their base envelope.
    pub(crate) fn new(directory: &'a Path, replies: &'a [Reply], base: &'a Value) -> Self {
        Self {
            directory,
            replies,
            base,
            model: None,
            server: None,
            site: None,
            earlier: None,
            chunks: Vec::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Returns the address of the server.
    pub(crate) fn address(&self) -> Result<&str, String> {
        self.server.as_ref().map(|server| &*server.address).ok_or_else(|| "no server runs".to_owned())
    }

    /// Starts a site as `{site}`; `{site_host}` is its form in `media.allow`.
    pub(crate) fn open(&mut self, site: Site) {
        self.kept.insert("site".to_owned(), Value::from(format!("http://{}", site.host)));
        self.kept.insert("site_host".to_owned(), Value::from(site.host.clone()));
        self.site = Some(site);
    }

    /// The bodies of the requests to the model so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.model.as_ref().map(Model::requests).unwrap_or_default()
    }

    /// Replaces `{directory}`, and `{name}` by the stored value.
    pub(crate) fn filled(&self, text: &str) -> String {
        let text = text.replace("{directory}", &self.directory.to_string_lossy());
        self.kept.iter().fold(text, |text, (name, value)| {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.replace(&format!("{{{name}}}"), &shown)
        })
    }

    /// Replaces placeholders in a value; a text that is one placeholder becomes the stored value.
    pub(crate) fn filled_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                let kept = name.and_then(|name| self.kept.get(name)).cloned();
                kept.unwrap_or_else(|| Value::from(self.filled(text)))
            }
            Value::Array(items) => items.iter().map(|item| self.filled_in(item)).collect(),
            Value::Object(members) => {
                let members = members.iter().map(|(key, member)| (key.clone(), self.filled_in(member)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    /// Stores the value at a JSON pointer of the outcome.
    pub(crate) fn keep(&mut self, names: &BTreeMap<String, String>, arrived: &Value) -> Result<(), String> {
        for (name, pointer) in names {
            let found =
                arrived.pointer(pointer).ok_or_else(|| format!("nothing at {pointer} of {arrived}"))?;
            self.kept.insert(name.clone(), found.clone());
        }
        Ok(())
    }

    /// Whether the chunks equal those of the last step, except for members that differ from run to run.
    pub(crate) fn check_same(&self, chunks: &[Value]) -> Vec<String> {
        let (now, before) = (comparable(chunks), comparable(&self.chunks));
        if now == before && !now.is_empty() {
            return Vec::new();
        }
        vec![format!(": {}\n, before {}", Value::from(now), Value::from(before))]
    }

    /// Whether the values stored under these names all differ.
    pub(crate) fn check_distinct(&self, names: &[String]) -> Vec<String> {
        let values: BTreeSet<String> =
            names.iter().filter_map(|name| self.kept.get(name)).map(Value::to_string).collect();
        if values.len() == names.len() { Vec::new() } else { vec![format!(": only {values:?}")] }
    }
}
