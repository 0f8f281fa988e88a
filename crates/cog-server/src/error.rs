//! The errors of requests: an envelope with its status.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use cog_json::Node;
use cog_run::ClientRules;
use cog_spec::{Code, Envelope, ErrorBody, Outcome};

use crate::{
    answer,
    guard::{OperatorError, Refusal},
};

/// Why a request fails.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// An error of a route or of a run.
    Failed(Box<FailedRequest>),
    /// A limit or an access check refused the request.
    Refused(Refusal),
}

/// An envelope and its status.
#[derive(Debug)]
pub(crate) struct FailedRequest {
    status: StatusCode,
    envelope: Envelope,
}

impl ApiError {
    /// An error with this code.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        ErrorBody::new(code, message).into()
    }

    /// Adds a suggestion.
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        if let Self::Failed(failed) = &mut self
            && let Outcome::Failure { error, .. } = &mut failed.envelope.outcome
        {
            error.suggestion = Some(suggestion.into());
        }
        self
    }

    /// Replaces the status of the code.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        if let Self::Failed(failed) = &mut self {
            failed.status = status;
        }
        self
    }

    /// Returns the error.
    pub(crate) fn body(&self) -> &ErrorBody {
        match self {
            Self::Failed(failed) => match &failed.envelope.outcome {
                Outcome::Failure { error, .. } => error,
                Outcome::Success { .. } => unreachable!("an error has the envelope of a failure"),
            },
            Self::Refused(refusal) => refusal.error(),
        }
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Failed(failed) => failed.status,
            Self::Refused(refusal) => refusal.status(),
        }
    }

    /// Returns the envelope, for a transport without statuses.
    pub(crate) fn into_envelope(self) -> Envelope {
        match self {
            Self::Failed(failed) => failed.envelope,
            Self::Refused(refusal) => Envelope::failure(refusal.error().clone()),
        }
    }
}

impl ApiError {
    /// Returns the error as a client with these rules receives it, for a transport that does not pass the guard again.
    pub(crate) fn shown(self, rules: &ClientRules) -> Self {
        match self.body() {
            error if error.is_for_operator() => rules.shown(error.clone()).into(),
            _ => self,
        }
    }
}

impl From<ErrorBody> for ApiError {
    fn from(error: ErrorBody) -> Self {
        Box::new(Envelope::failure(error)).into()
    }
}

impl From<Box<Envelope>> for ApiError {
    fn from(envelope: Box<Envelope>) -> Self {
        Self::Failed(Box::new(FailedRequest { status: answer::status(&envelope), envelope: *envelope }))
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Failed(failed) => {
                let mut response = answer::with_status(failed.status, &failed.envelope);
                if let Some(error) = failed.envelope.error().filter(|error| error.is_for_operator()) {
                    response.extensions_mut().insert(OperatorError(error.clone()));
                }
                response
            }
            Self::Refused(refusal) => refusal.into_response(),
        }
    }
}

/// Checks that an object has no other keys than these. `prefix` is the path before the keys.
///
/// # Errors
/// E1001, with the first unknown key.
pub(crate) fn allow_only(node: Node<'_>, prefix: &str, keys: &[&str]) -> Result<(), ErrorBody> {
    let Some((unknown, _)) = node.members().find(|(key, _)| !keys.contains(key)) else { return Ok(()) };
    let shown: String = unknown.chars().take(60).collect();
    let message = format!("{prefix}{shown}: unknown key; allowed: {}", keys.join(", "));
    Err(ErrorBody::new(Code::InvalidInput, message))
}
