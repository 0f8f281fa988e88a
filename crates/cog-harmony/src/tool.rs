use cog_json::Value;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::other::{member, write_members, write_optional, write_other};

/// A tool call that the model requests (appendix A.2.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCall {
    /// The identifier to which the result refers.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: a string that contains JSON, never an object.
    pub arguments: String,
    /// What the provider requires back unchanged with this call, such as a thought signature of Gemini. It is only sent
    /// back to its provider.
    pub signature: Option<String>,
    /// The members that this type does not name, as an object; unknown members of `function` are in its member `function`.
    pub other: Option<Value>,
}

impl ToolCall {
    /// Creates a call without other fields.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None, other: None }
    }
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
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self))?;
        write_optional(&mut map, "signature", &self.signature)?;
        write_other(&mut map, &self.other, &["function"])?;
        map.end()
    }
}

/// The member `function` of a call.
struct Function<'a>(&'a ToolCall);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.name)?;
        map.serialize_entry("arguments", &self.0.arguments)?;
        write_members(&mut map, member(&self.0.other, "function"), &[])?;
        map.end()
    }
}
