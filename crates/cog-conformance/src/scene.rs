//! The state that the steps of a case share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use cog_spec::Form;
use serde_json::Value;

use crate::{
    base::Reply,
    http::Endpoint,
    model::Model,
    server::{Programs, Server},
    site::Site,
    stream::comparable,
};

/// The directory, the model, the server, and the values that earlier steps stored.
pub(crate) struct Scene<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) programs: &'a Programs,
    pub(crate) replies: &'a [Reply],
    /// The envelope that the replies change.
    pub(crate) base: &'a Value,
    /// The form in which models are asked, if it is set.
    pub(crate) form: Option<&'static Form>,
    /// The model of the server, or of the step.
    pub(crate) model: Option<Model>,
    /// The server that requests are sent to.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) site: Option<Site>,
    /// The last request to the model in the steps so far.
    pub(crate) last_request: Option<Value>,
    /// The chunks of the last step that had any.
    pub(crate) chunks: Vec<Value>,
    /// The stored values, by name.
    pub(crate) kept: BTreeMap<String, Value>,
}

impl<'a> Scene<'a> {
    /// Creates the scene from a directory, the case's replies, and their base envelope. `{path}` is the `PATH` of the runner.
    pub(crate) fn new(
        directory: &'a Path,
        programs: &'a Programs,
        replies: &'a [Reply],
        base: &'a Value,
    ) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "where the runner finds ffmpeg, a case may let the program find it"
        )]
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            directory,
            programs,
            replies,
            base,
            form: None,
            model: None,
            endpoint: None,
            site: None,
            last_request: None,
            chunks: Vec::new(),
            kept: BTreeMap::from([("path".to_owned(), path.into())]),
        }
    }

    /// Returns whether the rulings apply (ruling R77): to this runtime. Others are judged by the specification alone.
    pub(crate) fn applies_rulings(&self) -> bool {
        !matches!(self.endpoint, Some(Endpoint::Remote(_)))
    }

    pub(crate) fn endpoint(&self) -> Result<&Endpoint, String> {
        self.endpoint.as_ref().ok_or_else(|| "no server runs".to_owned())
    }

    /// Returns the server that the case started.
    pub(crate) fn server(&self) -> Result<&Server, String> {
        match self.endpoint()? {
            Endpoint::Server(server) => Ok(server),
            Endpoint::Remote(_) => Err("the server is not one of the case".to_owned()),
        }
    }

    /// Starts a site as `{site}`; `{site_host}` is its form in `media.allow`.
    pub(crate) fn open(&mut self, site: Site) {
        self.kept.insert("site".to_owned(), Value::from(format!("http://{}", site.host)));
        self.kept.insert("site_host".to_owned(), Value::from(site.host.clone()));
        self.site = Some(site);
    }

    /// Returns the bodies of the requests to the model so far.
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

    /// Replaces placeholders in a value; a string that is one placeholder becomes the stored value.
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

    /// Stores the values at JSON pointers of the outcome.
    pub(crate) fn keep(&mut self, names: &BTreeMap<String, String>, outcome: &Value) -> Result<(), String> {
        for (name, pointer) in names {
            let found =
                outcome.pointer(pointer).ok_or_else(|| format!("nothing at {pointer} of {outcome}"))?;
            self.kept.insert(name.clone(), found.clone());
        }
        Ok(())
    }

    /// Compares the chunks with the chunks of the last step, except for members that differ from run to run.
    pub(crate) fn check_same(&self, chunks: &[Value]) -> Vec<String> {
        let now = comparable(chunks);
        let before = comparable(&self.chunks);
        if now == before && !now.is_empty() {
            return Vec::new();
        }
        vec![format!(": {}\n, before {}", Value::from(now), Value::from(before))]
    }

    /// Checks that the values stored under these names all differ.
    pub(crate) fn check_distinct(&self, names: &[String]) -> Vec<String> {
        let values: BTreeSet<String> =
            names.iter().filter_map(|name| self.kept.get(name)).map(Value::to_string).collect();
        if values.len() == names.len() { Vec::new() } else { vec![format!(": only {values:?}")] }
    }
}
