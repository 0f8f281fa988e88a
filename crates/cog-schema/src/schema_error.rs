use cog_spec::Code;
use serde::Serialize;
use thiserror::Error;

/// An error of a schema document, or a warning of [`Contract::warnings`](crate::Contract::warnings).
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{}: {message}", if .pointer.is_empty() { "/" } else { .pointer.as_str() })]
pub struct SchemaError {
    /// Its JSON pointer (RFC 6901); empty for the complete document.
    pub pointer: String,
    /// What was found and what is allowed.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl SchemaError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into(), suggestion: None }
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Returns the code of the envelope: E4008, the module does not load.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::ModuleInvalid
    }
}
