use cog_json::{ToJson, Value, Writer};

use crate::{Code, ErrorCode, Meta, Secret, Usage, Warning};

/// The one answer of every run: `{ok, meta, data}` or `{ok, meta, error, partial_data?}` (SPEC 3.1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The control plane.
    pub meta: Meta,
    /// The data plane, or why there is none.
    pub outcome: Outcome,
    /// `_warnings`: what a caller should know (docs/spec/streaming.md).
    pub warnings: Vec<Warning>,
    /// `_emitted_context`: what the module hands on (docs/spec/context.md).
    pub emitted_context: Option<Value>,
}

/// What stands beside `meta`.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `ok: true`.
    Success {
        /// The checked answer.
        data: Value,
    },
    /// `ok: false`.
    Failure {
        /// What went wrong.
        error: ErrorBody,
        /// What there is of the answer.
        partial_data: Option<Value>,
    },
}

/// `error`: code, message, and what helps (docs/spec/errors.md).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ErrorBody {
    /// The code.
    pub code: ErrorCode,
    /// What happened, for a person; holds no secret.
    pub message: String,
    /// Whether another attempt can help.
    pub recoverable: Option<bool>,
    /// What to do about it.
    pub suggestion: Option<String>,
    /// More, for a program: an object.
    pub details: Option<Value>,
}

impl ErrorBody {
    /// An error of the table; `recoverable` as the table says, left out where it says maybe.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_code(code.into(), message)
    }

    /// An error with a code of the table or of the module's own, which says nothing of `recoverable`.
    pub fn with_code(code: ErrorCode, message: impl Into<String>) -> Self {
        let recoverable = match code {
            ErrorCode::Standard(code) => code.recoverable().as_bool(),
            ErrorCode::Declared(_) => None,
        };
        Self { code, message: message.into(), recoverable, suggestion: None, details: None }
    }

    /// The same with a suggestion.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The same with details, an object.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The same without a secret, wherever it stands.
    #[must_use]
    pub fn without(self, secret: &Secret) -> Self {
        let details =
            self.details.map(|details| Value::parse(&secret.redact(&details.to_json())).unwrap_or_default());
        Self {
            message: secret.redact(&self.message),
            suggestion: self.suggestion.map(|suggestion| secret.redact(&suggestion)),
            details,
            ..self
        }
    }

    /// The same, said to be recoverable or not.
    #[must_use]
    pub fn with_recoverable(mut self, recoverable: bool) -> Self {
        self.recoverable = Some(recoverable);
        self
    }
}

impl Envelope {
    /// An envelope without warnings.
    pub fn new(meta: Meta, outcome: Outcome) -> Self {
        Self { meta, outcome, warnings: Vec::new(), emitted_context: None }
    }

    /// A success without warnings.
    pub fn success(meta: Meta, data: Value) -> Self {
        Self::new(meta, Outcome::Success { data })
    }

    /// A failure that the runtime found, with the meta of ruling R32.
    pub fn failure(error: ErrorBody) -> Self {
        let meta = Meta::for_failure(&error.message);
        Self::new(meta, Outcome::Failure { error, partial_data: None })
    }

    /// Whether the run succeeded.
    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Outcome::Success { .. })
    }

    /// The checked answer of a success.
    pub fn data(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Success { data } => Some(data),
            Outcome::Failure { .. } => None,
        }
    }

    /// The error of a failure.
    pub fn error(&self) -> Option<&ErrorBody> {
        match &self.outcome {
            Outcome::Success { .. } => None,
            Outcome::Failure { error, .. } => Some(error),
        }
    }

    /// The tokens of the run, where they are known.
    pub fn usage(&self) -> Option<Usage> {
        self.meta.runtime.usage
    }
}

impl ToJson for Envelope {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("ok", &self.is_ok());
            w.field("meta", &self.meta);
            match &self.outcome {
                Outcome::Success { data } => {
                    w.field("data", data);
                }
                Outcome::Failure { error, partial_data } => {
                    w.field("error", error);
                    w.optional("partial_data", partial_data);
                }
            }
            write_extras(w, &self.warnings, self.emitted_context.as_ref());
        });
    }
}

/// `_warnings` and `_emitted_context`, which stand beside `meta` in envelope and final chunk alike.
pub(crate) fn write_extras(w: &mut Writer<'_>, warnings: &[Warning], emitted_context: Option<&Value>) {
    if !warnings.is_empty() {
        w.field("_warnings", warnings);
    }
    w.optional("_emitted_context", &emitted_context);
}

impl ToJson for ErrorBody {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| write_error_fields(w, self));
    }
}

pub(crate) fn write_error_fields(w: &mut Writer<'_>, error: &ErrorBody) {
    w.field("code", error.code.as_str());
    w.field("message", &error.message);
    w.optional("recoverable", &error.recoverable);
    w.optional("suggestion", &error.suggestion);
    w.optional("details", &error.details);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_removed_from_every_text_of_an_error() {
        let details = Value::parse(r#"{"reason": "key sk-canary is wrong"}"#).unwrap();
        let error = ErrorBody::new(Code::ProviderUnavailable, "401 for sk-canary")
            .suggest("Replace sk-canary.")
            .with_details(details)
            .without(&Secret::new("sk-canary"));
        assert_eq!(error.message, "401 for ***");
        assert_eq!(error.suggestion.as_deref(), Some("Replace ***."));
        assert_eq!(error.details.unwrap().to_json(), r#"{"reason":"key *** is wrong"}"#);
    }
}
