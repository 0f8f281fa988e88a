use std::{borrow::Cow, fmt};

use cog_json::{DeserializeError, Node, ToJson as _, Value, Writer};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use thiserror::Error;

use crate::{Code, ErrorCode, Meta, Secret, Usage, Warning, string_enum::string_enum};

/// The answer of every run: `{ok, meta, data}` or `{ok, meta, error, partial_data?}` (SPEC 3.1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The control plane.
    pub meta: Meta,
    /// The data of a successful run, or the error of a failed one.
    pub outcome: Outcome,
    /// `_warnings`: warnings for the caller (docs/spec/streaming.md).
    pub warnings: Vec<Warning>,
    /// `_emitted_context`: the context that the module emits (docs/spec/context.md).
    pub emitted_context: Option<Value>,
    /// `_handoff`: the packet for the agent that the run hands over to (docs/handoff.md).
    pub handoff: Option<Value>,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `ok: true`.
    Success {
        /// The checked answer.
        data: Value,
    },
    /// `ok: false`.
    Failure {
        /// The error.
        error: ErrorBody,
        /// The part of the answer that is available.
        partial_data: Option<Value>,
    },
}

/// The error of a failed run (docs/spec/errors.md).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ErrorBody {
    /// The error code.
    pub code: ErrorCode,
    /// A description of the error for people; never contains a secret.
    pub message: String,
    /// Whether a retry can succeed.
    pub recoverable: Option<bool>,
    /// A suggestion how to solve the problem.
    pub suggestion: Option<String>,
    /// Who reports the error. In the JSON it is the first member of `details`.
    pub origin: ErrorOrigin,
    /// Details for programs, an object without `origin`. [`ErrorBody::all_details`] has all members.
    pub details: Option<Value>,
    /// What a client of a server reads instead, if the message is for the operator: it contains an address, a variable or a file of
    /// the operator, or a vendor's text. Not a part of the JSON.
    pub client_message: Option<&'static str>,
}

string_enum! {
    /// Who reports an error: `error.details.origin` (ruling R88).
    ErrorOrigin {
        /// The model: it answered that it cannot do what was requested, or refused to answer.
        Model = "model",
        /// The runtime: a check, a limit, a policy or a deadline of its own.
        Runtime = "runtime",
        /// The provider: it rejected the request, failed, or did not reply in time.
        Provider = "provider",
    }
}

/// The member of `details` with the origin of the error.
const ORIGIN: &str = "origin";

/// The member of `details` with the id of the request, if the message of an error is for the operator.
const REQUEST_ID: &str = "request_id";

impl ErrorBody {
    /// Creates an error of the table, with its value of `recoverable`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_code(code.into(), message)
    }

    /// Creates an error with a code of the table, or with a declared code, which has no `recoverable`.
    pub fn with_code(code: ErrorCode, message: impl Into<String>) -> Self {
        let recoverable = match &code {
            ErrorCode::Standard(code) => code.recoverable().as_bool(),
            // Most errors of the input and of the run can be mended, most of the output and of the system cannot.
            ErrorCode::Declared(code) => match code.as_bytes().get(1) {
                Some(b'1' | b'2') => Some(true),
                Some(b'3' | b'4') => Some(false),
                _ => None,
            },
        };
        Self {
            code,
            message: message.into(),
            recoverable,
            suggestion: None,
            origin: ErrorOrigin::Runtime,
            details: None,
            client_message: None,
        }
    }

    /// Sets who reports the error. An error of the runtime needs no call.
    #[must_use]
    pub fn with_origin(mut self, origin: ErrorOrigin) -> Self {
        self.origin = origin;
        self
    }

    /// Returns whether the run failed with this code. A model that reports the code describes its task, and not the state of the
    /// runtime or of the provider.
    pub fn has_failed_with(&self, code: Code) -> bool {
        self.origin != ErrorOrigin::Model && self.code == ErrorCode::Standard(code)
    }

    /// Returns the message for people. It names the model if the words are the model's own.
    pub fn attributed_message(&self) -> Cow<'_, str> {
        let reason = self.details.as_ref().and_then(|details| details.get_str("reason"));
        match self.origin {
            // The message of a refusal begins with "The model refused".
            ErrorOrigin::Model if reason != Some("refusal") => {
                format!("the model reported: {}", self.message).into()
            }
            _ => Cow::Borrowed(&self.message),
        }
    }

    /// Returns a member of `details` of a failed run. None if the model wrote the details.
    pub fn detail(&self, key: &str) -> Option<Node<'_>> {
        self.details.as_ref().filter(|_| self.origin != ErrorOrigin::Model)?.get(key)
    }

    /// Returns `details` as they are written, with the origin.
    pub fn all_details(&self) -> Value {
        Value::parse(&DetailsForm::new(self).to_json()).unwrap_or_default()
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds details, an object.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Masks a secret in the message, the suggestion and the details.
    #[must_use]
    pub fn without(self, secret: &Secret) -> Self {
        // A secret of digits only may be a number, and the mask is none: then the details go.
        let details = self.details.and_then(|details| Value::parse(&secret.redact(&details.to_json())).ok());
        Self {
            message: secret.redact(&self.message),
            suggestion: self.suggestion.map(|suggestion| secret.redact(&suggestion)),
            details,
            ..self
        }
    }

    /// Sets what a client of a server reads instead of the message.
    #[must_use]
    pub fn for_operator(mut self, client_message: &'static str) -> Self {
        self.client_message = Some(client_message);
        self
    }

    /// Returns whether the message is for the operator of a server, and not for its clients. An internal error and an invalid module
    /// are, unless [`ErrorBody::for_client`] returned the error.
    pub fn is_for_operator(&self) -> bool {
        self.message_for_client().is_some()
    }

    fn message_for_client(&self) -> Option<&'static str> {
        let is_shown = self.detail(REQUEST_ID).is_some();
        match self.code {
            // What a model reports is an answer: its message says nothing about the runtime.
            _ if is_shown || self.origin == ErrorOrigin::Model => None,
            _ if self.client_message.is_some() => self.client_message,
            ErrorCode::Standard(Code::InternalError) => Some("internal server error"),
            ErrorCode::Standard(Code::ModuleInvalid) => Some("the module is not valid"),
            _ => None,
        }
    }

    /// Returns the error as a client of a server receives it. If the message is for the operator, the client receives the code, what
    /// it means, and the id of its request, under which the operator's log has the error. Of the details only `reason` and
    /// `retry_after_ms` are kept.
    #[must_use]
    pub fn for_client(self, request_id: &str) -> Self {
        let Some(message) = self.message_for_client() else { return self };
        let mut details = String::new();
        Writer::compact(&mut details).object(|w| {
            for key in ["reason", "retry_after_ms"] {
                w.optional(key, &self.detail(key));
            }
            w.field(REQUEST_ID, request_id);
        });
        Self {
            message: message.to_owned(),
            suggestion: Some(format!(
                "Ask the operator of the server: its log has the cause under {request_id}."
            )),
            details: Value::parse(&details).ok(),
            client_message: None,
            ..self
        }
    }

    /// Sets whether the error is recoverable.
    #[must_use]
    pub fn with_recoverable(mut self, recoverable: bool) -> Self {
        self.recoverable = Some(recoverable);
        self
    }
}

impl Envelope {
    /// Creates an envelope without warnings.
    pub fn new(meta: Meta, outcome: Outcome) -> Self {
        Self { meta, outcome, warnings: Vec::new(), emitted_context: None, handoff: None }
    }

    /// Creates the envelope of a successful run, without warnings.
    pub fn success(meta: Meta, data: Value) -> Self {
        Self::new(meta, Outcome::Success { data })
    }

    /// Creates the envelope of an error that the runtime found, with the meta of ruling R32.
    pub fn failure(error: ErrorBody) -> Self {
        let meta = Meta::for_failure(&error.message);
        Self::new(meta, Outcome::Failure { error, partial_data: None })
    }

    /// Returns whether the run succeeded.
    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Outcome::Success { .. })
    }

    /// Returns the answer of a successful run.
    pub fn data(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Success { data } => Some(data),
            Outcome::Failure { .. } => None,
        }
    }

    /// Returns the error of a failed run.
    pub fn error(&self) -> Option<&ErrorBody> {
        match &self.outcome {
            Outcome::Success { .. } => None,
            Outcome::Failure { error, .. } => Some(error),
        }
    }

    /// Returns the tokens of the run, if they are known.
    pub fn usage(&self) -> Option<&Usage> {
        self.meta.runtime.usage.as_ref()
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { meta, outcome, warnings, emitted_context, handoff } = self;
        match outcome {
            Outcome::Success { data } => {
                EnvelopeForm::Success { ok: true, meta, data, warnings, emitted_context, handoff }
                    .serialize(serializer)
            }
            Outcome::Failure { error, partial_data } => {
                EnvelopeForm::Failure { ok: false, meta, error, partial_data, warnings, emitted_context }
                    .serialize(serializer)
            }
        }
    }
}

/// The answer of a run: the data of a success, or the error of a failure (SPEC 3.1).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Envelope", transform = crate::schema::one_of, extend("type" = "object")))]
#[serde(untagged)]
pub(crate) enum EnvelopeForm<'a> {
    /// A successful run.
    #[cfg_attr(feature = "schema", schemars(title = "success", extend("not" = { "anyOf": [{ "required": ["error"] }, { "required": ["partial_data"] }] })))]
    Success {
        /// True for a successful run.
        #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
        ok: bool,
        /// The control plane.
        meta: &'a Meta,
        /// The checked answer.
        #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Object"))]
        data: &'a Value,
        /// The warnings of the run.
        #[serde(rename = "_warnings", skip_serializing_if = "<[Warning]>::is_empty")]
        warnings: &'a [Warning],
        /// The context that the module emits.
        #[serde(rename = "_emitted_context", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
        emitted_context: &'a Option<Value>,
        /// The packet for the agent that the run hands over to.
        #[serde(rename = "_handoff", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Object"))]
        handoff: &'a Option<Value>,
    },
    /// A failed run.
    #[cfg_attr(feature = "schema", schemars(title = "failure", extend("not" = { "required": ["data"] })))]
    Failure {
        /// False for a failed run.
        #[cfg_attr(feature = "schema", schemars(extend("const" = false)))]
        ok: bool,
        /// The control plane.
        meta: &'a Meta,
        /// The error.
        error: &'a ErrorBody,
        /// The part of the answer that is available.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::schema::ObjectOrNull"))]
        partial_data: &'a Option<Value>,
        /// The warnings of the run.
        #[serde(rename = "_warnings", skip_serializing_if = "<[Warning]>::is_empty")]
        warnings: &'a [Warning],
        /// The context that the module emits.
        #[serde(rename = "_emitted_context", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
        emitted_context: &'a Option<Value>,
    },
}

// Errors as they are written.

impl Serialize for ErrorBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { code, message, recoverable, suggestion, .. } = self;
        let details = DetailsForm::new(self);
        ErrorForm { code, message, recoverable: *recoverable, suggestion: suggestion.as_deref(), details }
            .serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ErrorBody {
    fn schema_name() -> Cow<'static, str> {
        ErrorForm::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ErrorForm::json_schema(generator)
    }
}

/// The error of a failed run (docs/spec/errors.md).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "error"))]
struct ErrorForm<'a> {
    /// The error code.
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^E[1-9][0-9]{3}$")))]
    code: &'a ErrorCode,
    /// A description of the error for people; never contains a secret.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    message: &'a str,
    /// Whether a retry can succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    recoverable: Option<bool>,
    /// A suggestion how to solve the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    /// Details for programs.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<crate::schema::ErrorDetails>", skip_serializing_if = "Option::is_none")
    )]
    details: DetailsForm<'a>,
}

/// The details of an error with its origin.
struct DetailsForm<'a> {
    origin: ErrorOrigin,
    others: Option<&'a Value>,
}

impl<'a> DetailsForm<'a> {
    fn new(error: &'a ErrorBody) -> Self {
        Self { origin: error.origin, others: error.details.as_ref() }
    }
}

impl Serialize for DetailsForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(ORIGIN, &self.origin)?;
        // An origin among the members is one that a model wrote.
        for (key, member) in self.others.into_iter().flat_map(|others| others.members()) {
            if key != ORIGIN {
                map.serialize_entry(key, &member)?;
            }
        }
        map.end()
    }
}

// Reads envelopes and errors as they are written.

impl Envelope {
    /// Reads an envelope that was written as JSON. None if the node is not an envelope.
    pub fn read(envelope: Node<'_>) -> Option<Self> {
        let value = |key: &str| envelope.get(key).map(Node::to_value);
        let outcome = match envelope.get("ok")?.as_bool()? {
            true => Outcome::Success { data: value("data")? },
            false => {
                let error = ErrorBody::read(envelope.get("error")?)?;
                Outcome::Failure { error, partial_data: value("partial_data") }
            }
        };
        let warnings = envelope.get("_warnings").into_iter().flat_map(Node::elements);
        Some(Self {
            meta: Meta::read(envelope.get("meta")?)?,
            outcome,
            warnings: warnings.map(|warning| Warning::deserialize(warning).ok()).collect::<Option<_>>()?,
            emitted_context: value("_emitted_context"),
            handoff: value("_handoff"),
        })
    }
}

impl ErrorBody {
    /// Reads an error that was written as JSON. None if the node is not an error.
    pub fn read(error: Node<'_>) -> Option<Self> {
        let text = |key: &str| error.get_str(key).map(str::to_owned);
        Some(Self {
            code: ErrorCode::read(&text("code")?)?,
            message: text("message")?,
            recoverable: error.get("recoverable").and_then(Node::as_bool),
            suggestion: text("suggestion"),
            origin: error.get("details").and_then(origin).unwrap_or(ErrorOrigin::Runtime),
            details: error.get("details").and_then(without_origin),
            client_message: None,
        })
    }
}

/// Returns the origin that details name.
fn origin(details: Node<'_>) -> Option<ErrorOrigin> {
    details.get_str(ORIGIN)?.parse().ok()
}

/// Returns details without their origin, or none if they have no other member.
fn without_origin(details: Node<'_>) -> Option<Value> {
    if details.get(ORIGIN).is_none() {
        return Some(details.to_value());
    }
    let mut text = String::new();
    let others = details.members().filter(|(key, _)| *key != ORIGIN);
    Writer::compact(&mut text).object(|w| {
        for (key, member) in others {
            w.field(key, &member);
        }
    });
    Value::parse(&text).ok().filter(|details| details.members().next().is_some())
}

impl ErrorCode {
    /// Reads a code of the table, or one that a manifest may declare.
    fn read(code: &str) -> Option<Self> {
        let standard = code.parse::<Code>().ok().map(Self::Standard);
        standard.or_else(|| Self::is_declarable(code).then(|| Self::Declared(code.to_owned())))
    }
}

// Envelopes as Rust results: a failed run as an error, and the data of a successful one as the caller's own type.

/// The error of [`Envelope::data_as`].
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The run failed.
    #[error(transparent)]
    Failed(ErrorBody),
    /// The data do not match the type.
    #[error("the data of the answer do not fit the type: {0}")]
    Form(DeserializeError),
}

impl fmt::Display for ErrorBody {
    /// `E1006 INVALID_REFERENCE: message`, and the suggestion if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(name) = self.code.name() {
            write!(f, " {name}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " (help: {suggestion})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorBody {}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Success { .. } => f.write_str("the run succeeded"),
            Outcome::Failure { error, .. } => error.fmt(f),
        }
    }
}

/// A failed run as an error, with the message of its [`ErrorBody`].
impl std::error::Error for Envelope {}

impl Envelope {
    /// Returns the data of a successful run as the caller's own type, which may borrow its strings from the envelope.
    ///
    /// # Errors
    /// [`DataError::Failed`] with the error of a failed run; [`DataError::Form`] if the data do not match the type.
    pub fn data_as<'de, T: Deserialize<'de>>(&'de self) -> Result<T, DataError> {
        match &self.outcome {
            Outcome::Success { data } => cog_json::from_value(data).map_err(DataError::Form),
            Outcome::Failure { error, .. } => Err(DataError::Failed(error.clone())),
        }
    }

    /// Returns the envelope of a successful run, and the error of a failed one.
    ///
    /// # Errors
    /// The error of a failed run.
    pub fn into_result(self) -> Result<Self, ErrorBody> {
        match self.outcome {
            Outcome::Success { .. } => Ok(self),
            Outcome::Failure { error, .. } => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
