//! One entry of the run log.

use std::time::SystemTime;

use cog_json::Value;
use cog_module::{Module, Origin};
use cog_run::RunInput;
use cog_spec::{Envelope, Usage};
use serde::{Deserialize, Serialize};

/// The characters of an ID: none looks like another one.
const ID_CHARACTERS: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";
const ID_LENGTH: usize = 8;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::commands) struct Entry {
    pub(in crate::commands) id: String,
    /// The end of the run, as RFC 3339 in UTC.
    pub(in crate::commands) time: String,
    pub(in crate::commands) module: String,
    pub(in crate::commands) module_version: String,
    /// The directory of the module; none if it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) directory: Option<String>,
    /// The providers that the settings select, `openai,anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) requested_provider: Option<String>,
    /// The model that the settings select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) requested_model: Option<String>,
    /// The model that replied, as `PROVIDER/MODEL`.
    pub(in crate::commands) model: Option<String>,
    pub(in crate::commands) ok: bool,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) code: Option<String>,
    pub(in crate::commands) time_ms: Option<u64>,
    pub(in crate::commands) usage: Option<Usage>,
    /// Only if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) contents: Option<Contents>,
}

/// The input and the answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::commands) struct Contents {
    /// The text of `--args`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) args: Option<String>,
    /// The input as JSON; with a text, its other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) input: Option<Value>,
    pub(in crate::commands) envelope: Value,
}

impl Entry {
    pub(super) fn new(module: &Module, envelope: &Envelope, contents: Option<Contents>) -> Self {
        let directory = match &module.origin {
            Origin::Directory(directory) => {
                let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
                Some(directory.to_string_lossy().into_owned())
            }
            _ => None,
        };
        Self {
            id: new_id(),
            time: now(),
            module: module.manifest.name.clone(),
            module_version: module.manifest.version.clone(),
            directory,
            requested_provider: None,
            requested_model: None,
            model: envelope.meta.runtime.model.clone(),
            ok: envelope.is_ok(),
            code: envelope.error().map(|error| error.code.as_str().to_owned()),
            time_ms: envelope.meta.runtime.processing_time_ms,
            usage: envelope.usage().cloned(),
            contents,
        }
    }

    /// Reads a line of the log.
    pub(super) fn read(line: &str) -> Option<Self> {
        cog_json::from_value(&Value::parse(line).ok()?).ok()
    }

    pub(super) fn without_contents(self) -> Self {
        Self { contents: None, ..self }
    }

    /// Returns `ok`, or the code of the error.
    pub(in crate::commands) fn result(&self) -> &str {
        match &self.code {
            _ if self.ok => "ok",
            Some(code) => code,
            None => "failed",
        }
    }

    /// Returns the providers that were requested, otherwise the one that replied.
    pub(in crate::commands) fn providers(&self) -> Vec<String> {
        let replied = || Some(self.model.as_deref()?.split_once('/')?.0);
        let providers = self.requested_provider.as_deref().or_else(replied);
        providers.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
    }
}

impl Contents {
    pub(super) fn new(input: &RunInput, envelope: &Envelope) -> Self {
        let (args, input) = match input {
            RunInput::Json(value) => (None, Some(value.clone())),
            RunInput::Args(text) => (Some(text.clone()), None),
            RunInput::ArgsWith(text, rest) => (Some(text.clone()), Some(rest.clone())),
            _ => (None, None),
        };
        Self { args, input, envelope: cog_json::to_value(envelope).unwrap_or_default() }
    }

    /// Returns the input as the run received it.
    pub(in crate::commands) fn run_input(&self) -> RunInput {
        match (self.args.clone(), self.input.clone()) {
            (Some(text), Some(rest)) => RunInput::ArgsWith(text, rest),
            (Some(text), None) => RunInput::Args(text),
            (None, input) => RunInput::Json(input.unwrap_or_default()),
        }
    }
}

fn new_id() -> String {
    let random = || fastrand::choice(ID_CHARACTERS).map_or('2', |character| char::from(*character));
    std::iter::repeat_with(random).take(ID_LENGTH).collect()
}

#[expect(clippy::disallowed_methods, reason = "the log has the time of each run; no decision depends on it")]
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
