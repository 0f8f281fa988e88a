use cog_json::Value;
use serde::{Serialize, Serializer};

/// A tool call that the model requests (appendix A.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCall {
    /// The identifier to which the result refers.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: a string that contains JSON, never an object.
    pub arguments: String,
    /// What the provider requires back unchanged with this call, such as a thought signature of Gemini. It is only sent
    /// back to its provider, and neither read from JSON nor written to it.
    pub signature: Option<String>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name of the tool: letters, digits, `_` and `-`.
    pub name: String,
    /// What the tool does, and when to call it.
    pub description: String,
    /// The JSON Schema of the arguments, in the provider's dialect.
    pub parameters: Value,
    /// Whether the provider is to enforce the schema.
    pub strict: bool,
}

/// Which tools a model may call in its reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None; the model replies with its answer.
    None,
    /// At least one.
    Required,
    /// The tool with this name.
    Named(String),
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, name, arguments, .. } = self;
        ToolCallForm { id, r#type: "function", function: Function { name, arguments } }.serialize(serializer)
    }
}

/// A tool call as it is written.
#[derive(Serialize)]
struct ToolCallForm<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}
