//! Why a request is not answered as it asks: an envelope with its status.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use cog_spec::{Code, Envelope, ErrorBody};

use crate::{answer, guard::Refusal};

/// Why a request is not answered as it asks.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// What a route or a run found.
    Told(Box<Told>),
    /// What a guard refused.
    Refused(Refusal),
}

/// An envelope, and the status that goes with it.
#[derive(Debug)]
pub(crate) struct Told {
    status: StatusCode,
    envelope: Envelope,
}

impl ApiError {
    /// An error of the table.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        ErrorBody::new(code, message).into()
    }

    /// The same with a suggestion.
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self
            && let cog_spec::Outcome::Failure { error, .. } = &mut told.envelope.outcome
        {
            error.suggestion = Some(suggestion.into());
        }
        self
    }

    /// The same with another status than that of its code.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        if let Self::Told(told) = &mut self {
            told.status = status;
        }
        self
    }

    /// The envelope, for who reads no status.
    pub(crate) fn into_envelope(self) -> Envelope {
        match self {
            Self::Told(told) => told.envelope,
            Self::Refused(refusal) => Envelope::failure(refusal.error().clone()),
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
        Self::Told(Box::new(Told { status: answer::status(&envelope), envelope: *envelope }))
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
            Self::Told(told) => answer::with_status(told.status, &told.envelope),
            Self::Refused(refusal) => refusal.into_response(),
        }
    }
}
