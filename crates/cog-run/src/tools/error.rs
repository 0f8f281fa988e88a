use std::fmt;

use cog_json::Value;
use cog_spec::{Code, ErrorBody, ErrorCode, Usage};

/// Why a call failed. The model receives it as JSON and decides whether to call again (appendix A.2.2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolError {
    /// The kind of the error, a name such as `InvalidDateRange`.
    pub error_type: String,
    /// What happened, and what the model can do.
    pub message: String,
    /// The code, if the runtime or a module reports the error.
    pub code: Option<ErrorCode>,
    /// Details for the model.
    pub details: Option<Value>,
    /// The tokens that the tool spent on models; they count as those of the run.
    pub usage: Option<Box<Usage>>,
}

impl ToolError {
    /// Creates an error of the tool.
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error_type: error_type.into(),
            message: message.into(),
            code: None,
            details: None,
            usage: None,
        }
    }

    /// Adds details for the model.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Creates an error of the runtime, whose type is the name of the code.
    pub(crate) fn with_code(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::new(code.name(), message) }
    }
}

impl From<ErrorBody> for ToolError {
    fn from(error: ErrorBody) -> Self {
        let name = match &error.code {
            ErrorCode::Standard(code) => code.name().to_owned(),
            ErrorCode::Declared(code) => code.clone(),
        };
        Self { code: Some(error.code), details: error.details, ..Self::new(name, error.message) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error_type, self.message)
    }
}

impl std::error::Error for ToolError {}
