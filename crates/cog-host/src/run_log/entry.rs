//! The entries of the run log.

use cog_json::{Node, Value};
use cog_module::{Module, Origin};
use cog_run::{
    RunInput,
    events::{ToolOutcome, ToolReport},
};
use cog_spec::{Code, Envelope, ErrorBody, Evidence, Usage};
use serde::{Deserialize, Serialize};

use super::{
    facts::{directory_of, is_of, now},
    labels::{Label, LabelledRun},
};

/// The characters of an ID: none looks like another one.
const ID_CHARACTERS: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";
const ID_LENGTH: usize = 8;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The identifier.
    pub id: String,
    /// The end of the run, as RFC 3339 in UTC.
    pub time: String,
    /// The name of the module.
    pub module: String,
    /// Its version.
    pub module_version: String,
    /// The directory of the module; none if it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The providers that the settings select, `openai,anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_provider: Option<String>,
    /// The model that the settings select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
    /// The model that replied, as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Whether the run succeeded.
    pub ok: bool,
    /// The code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The duration in milliseconds.
    pub time_ms: Option<u64>,
    /// The tokens.
    pub usage: Option<Usage>,
    /// The client of the server, such as `token:ci`; none for a run of this machine's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The session of a run of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The request of a run of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The trace that the answer names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The SHA-256 of the input's canonical JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// The confidence that the answer states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What else is known about the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The calls of tools in the order of their ends, up to 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<LoggedCall>,
    /// The input and the answer, only if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
    /// The labels of the run, the oldest first. They are not in the log: [`Entry::with_labels`] adds them.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedCall {
    /// The end of the call, as RFC 3339 in UTC.
    pub time: String,
    /// The name of the tool.
    pub tool: String,
    /// The identifier of the call.
    pub id: String,
    /// `success`, the code or the type of an error, `halted`, or `dropped`.
    pub result: String,
    /// What a person decided about a call that was halted: `confirmed`, `denied`, or `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The SHA-256 of the arguments.
    pub arguments_sha256: String,
    /// The arguments, only if the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

impl LoggedCall {
    pub(super) fn new(tool: &ToolReport<'_>, stores_contents: bool) -> Self {
        let result = match tool.outcome {
            ToolOutcome::Returned => "success",
            ToolOutcome::Failed(error) => error,
            ToolOutcome::Halted => "halted",
            _ => "dropped",
        };
        Self {
            time: now(),
            tool: tool.name.to_owned(),
            id: tool.call_id.to_owned(),
            result: result.to_owned(),
            decision: tool.decision.map(str::to_owned),
            arguments_sha256: tool.arguments_sha256.to_owned(),
            arguments: tool.arguments.filter(|_| stores_contents).map(str::to_owned),
        }
    }
}

/// The input and the answer of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// The text of `--args`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// The input as JSON; with `args`, its other fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The envelope.
    pub envelope: Value,
}

impl Entry {
    pub(super) fn new(module: &Module, envelope: &Envelope, contents: Option<Contents>) -> Self {
        Self {
            id: new_run_id(),
            time: now(),
            module: module.manifest.name.clone(),
            module_version: module.manifest.version.clone(),
            directory: directory_of(&module.origin),
            requested_provider: None,
            requested_model: None,
            model: envelope.meta.runtime.model.clone(),
            ok: envelope.is_ok(),
            code: envelope.error().map(|error| error.code.as_str().to_owned()),
            time_ms: envelope.meta.runtime.processing_time_ms,
            usage: envelope.usage().cloned(),
            client: None,
            session_id: None,
            request_id: None,
            trace_id: envelope.meta.runtime.trace_id.clone(),
            input_sha256: None,
            confidence: envelope.meta.confidence.filter(|_| envelope.is_ok()),
            evidence: envelope.meta.runtime.evidence.clone(),
            calls: Vec::new(),
            contents,
            labels: Vec::new(),
        }
    }

    /// Reads a line of the log.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        cog_json::from_value(&Value::parse_bytes(line).ok()?).ok()
    }

    pub(super) fn without_contents(mut self) -> Self {
        self.calls.iter_mut().for_each(|call| call.arguments = None);
        Self { contents: None, ..self }
    }

    /// Returns `ok`, or the code of the error.
    pub fn result(&self) -> &str {
        match &self.code {
            _ if self.ok => "ok",
            Some(code) => code,
            None => "failed",
        }
    }

    /// Whether it is a run of this module.
    pub fn is_of(&self, origin: &Origin) -> bool {
        is_of(origin, &self.module, self.directory.as_deref())
    }

    /// Returns what a label repeats of the run.
    pub fn labelled(&self) -> LabelledRun {
        LabelledRun {
            module: self.module.clone(),
            module_version: self.module_version.clone(),
            directory: self.directory.clone(),
            model: self.model.clone(),
            input_sha256: self.input_sha256.clone(),
            ok: self.ok,
            confidence: self.confidence,
            evidence: self.evidence.clone(),
        }
    }

    /// Returns the argument that selects its module.
    pub fn target(&self) -> &str {
        self.directory.as_deref().unwrap_or(&self.module)
    }

    /// Returns the input and the answer.
    ///
    /// # Errors
    /// E1006 if they are not stored.
    pub fn stored_contents(&self) -> Result<&Contents, ErrorBody> {
        self.contents.as_ref().ok_or_else(|| {
            let message = format!("the input of the run `{}` is not stored", self.id);
            let advice = "Set COG_LOGS_CONTENTS=true, or `contents = true` in [logs] of ~/.config/cog/config.toml, to \
                          store the inputs of later runs up to 1 MiB.";
            ErrorBody::new(Code::InvalidReference, message).suggest(advice)
        })
    }

    /// Returns whether the answer and its parts passed their gates. None if there is no gate, or if the answer is not stored.
    pub fn passed_gate(&self) -> Option<bool> {
        let meta = self.contents.as_ref()?.envelope.get("meta")?;
        let parts = meta.get("parts").into_iter().flat_map(Node::elements);
        let wants_review = parts.filter_map(|part| part.get("review")?.as_bool()).any(|review| review);
        let passed = meta.get("gate").and_then(|gate| gate.get("passed")?.as_bool());
        if wants_review { Some(false) } else { passed }
    }

    /// Returns the providers that were requested, otherwise the one that replied.
    pub fn providers(&self) -> Vec<String> {
        let providers = self.requested_provider.as_deref().or_else(|| self.replied());
        providers.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
    }

    /// Returns the provider that replied; if the parts of a composition gave the answer, the provider of the first part.
    fn replied(&self) -> Option<&str> {
        let contents = self.contents.as_ref();
        let parts = contents.and_then(|contents| contents.envelope.get("meta")?.get("parts"));
        let parts = parts.into_iter().flat_map(Node::elements).filter_map(|part| part.get("model")?.as_str());
        let models = self.model.as_deref().into_iter().chain(parts);
        let mut providers = models.filter_map(|model| Some(model.split_once('/')?.0));
        providers.find(|name| cog_provider::provider_names().contains(name))
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
    pub fn run_input(&self) -> RunInput {
        match (self.args.clone(), self.input.clone()) {
            (Some(text), Some(rest)) => RunInput::ArgsWith(text, rest),
            (Some(text), None) => RunInput::Args(text),
            (None, input) => RunInput::Json(input.unwrap_or_default()),
        }
    }
}

/// Returns an identifier for a run.
pub fn new_run_id() -> String {
    // The list is not empty, so that the other character is never used.
    (0..ID_LENGTH).map(|_| fastrand::choice(ID_CHARACTERS).map_or('2', |byte| char::from(*byte))).collect()
}
