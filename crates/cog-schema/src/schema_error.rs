use cog_json::{ToJson, Writer};
use cog_spec::Code;
use thiserror::Error;

/// Why a document is no contract: one place, what is wrong there, what would help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {message}", if .pointer.is_empty() { "/" } else { .pointer.as_str() })]
pub struct SchemaError {
    /// Where in the document: a JSON pointer (RFC 6901); empty for the whole.
    pub pointer: String,
    /// What was found and what is allowed.
    pub message: String,
    /// What would put it right.
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

    /// E4008, always: the module does not load.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::ModuleInvalid
    }
}

impl ToJson for SchemaError {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("pointer", &self.pointer);
            w.field("message", &self.message);
            w.optional("suggestion", &self.suggestion);
        });
    }
}
