use cog_harmony::Part;
use cog_json::Value;
use cog_spec::Usage;

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The result as JSON. The model receives an object with `status: success` before its members, and any other value as
    /// `result`.
    pub value: Option<Value>,
    /// Images and other parts beside it, for a model that accepts them (appendix A.2.3).
    pub parts: Vec<Part>,
    /// The tokens that the tool spent on models; they count as those of the run.
    pub usage: Option<Usage>,
    /// The result has a high risk: from then on, every tool with side effects needs a confirmation.
    pub is_high_risk: bool,
}

impl ToolOutput {
    /// Returns a result of these parts, such as an image.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self { parts, ..Self::default() }
    }

    /// Adds a part.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds the tokens that the tool spent on models.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { value: Some(value), ..Self::default() }
    }
}

impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        Value::from(value).into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        serde_json::Value::from(text).into()
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
