use serde::Serialize;

/// A rule that a document violates, with its path and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The path, such as `citation_map.cit_01.location.bbox`.
    pub path: String,
    /// The name of the rule, such as `bbox`.
    pub rule: &'static str,
    /// What was found, and what is allowed.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Finding {
    /// Creates a finding without a suggestion.
    pub(crate) fn new(path: impl ToString, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_string(), rule, message: message.into(), suggestion: None }
    }

    /// Adds what to do about it.
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}
