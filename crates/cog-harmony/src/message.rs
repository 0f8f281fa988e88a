use std::fmt;

use cog_json::{Node, Value, Writer};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    Part,
    other::{member, write_members, write_number, write_optional, write_other},
};

/// The author of a message (appendix A.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// Every role, in the order of the appendix.
    pub const ALL: [Role; 4] = [Role::User, Role::Assistant, Role::System, Role::Tool];

    /// Returns the name in a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A message: the smallest unit of a conversation (appendix A.1.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// An identifier that is unique in the conversation, for references and rollback.
    pub id: Option<String>,
    /// The author of the message.
    pub role: Role,
    /// The author's name; required in a conversation of several agents.
    pub name: Option<String>,
    /// The creation time as Unix time in seconds.
    pub created_at: Option<f64>,
    /// The content; empty if an assistant only calls tools.
    pub content: Vec<Part>,
    /// The tool calls that an assistant requests (appendix A.2.1).
    pub tool_calls: Vec<ToolCall>,
    /// The call to which a tool message is the result (appendix A.2.2).
    pub tool_call_id: Option<String>,
    /// Cost, latency, model and trace (appendix A.6).
    pub metadata: Option<Value>,
    /// The model's reasoning that led to this message. It is only sent back to its provider.
    pub reasoning: Option<Reasoning>,
    /// The members that this type does not name, as an object. They are written back unchanged. The role `developer` of
    /// OpenAI is read as [`Role::System`], and is here as `role`.
    pub other: Option<Value>,
}

/// A model's reasoning in its provider's own form: `{provider, items}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reasoning {
    /// The name of the provider, `openai`.
    pub provider: String,
    /// The items, in order.
    pub items: Vec<Value>,
}

impl Message {
    /// Creates a message with these parts and no other field.
    pub fn new(role: Role, content: Vec<Part>) -> Self {
        Self {
            id: None,
            role,
            name: None,
            created_at: None,
            content,
            tool_calls: Vec::new(),
            tool_call_id: None,
            metadata: None,
            reasoning: None,
            other: None,
        }
    }

    /// Creates a system message with one text part.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::text(text)])
    }

    /// Creates a user message with one text part.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// Creates an assistant message with one text part.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }

    /// Returns the text of the message: its text parts, concatenated.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }
}

/// An ordered list of messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Conversation(pub Vec<Message>);

impl Conversation {
    /// Creates a conversation of these messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self(messages.into_iter().collect())
    }

    /// Returns the messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    /// Returns the length in bytes of the text and data of all messages.
    pub fn content_len(&self) -> usize {
        self.0.iter().flat_map(|message| &message.content).map(Part::content_len).sum()
    }
}

// Writes messages as JSON.

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_optional(&mut map, "id", &self.id)?;
        let role = member(&self.other, "role").and_then(cog_json::Node::as_str);
        map.serialize_entry("role", role.unwrap_or(self.role.as_str()))?;
        write_optional(&mut map, "name", &self.name)?;
        if let Some(created_at) = self.created_at {
            write_number(&mut map, "created_at", created_at)?;
        }
        map.serialize_entry("content", &Content(self))?;
        if !self.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &self.tool_calls)?;
        }
        write_optional(&mut map, "tool_call_id", &self.tool_call_id)?;
        write_optional(&mut map, "reasoning", &self.reasoning)?;
        write_optional(&mut map, "metadata", &self.metadata)?;
        write_other(&mut map, &self.other, &["role"])?;
        map.end()
    }
}

/// `content`, in the form that the role of the message requires (ruling R63).
struct Content<'a>(&'a Message);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = matches!(self.0.role, Role::Assistant | Role::Tool);
        match self.0.content.as_slice() {
            [] if plain => serializer.serialize_none(),
            [Part::Text(text)] if plain && text.index.is_none() && text.other.is_none() => {
                text.text.serialize(serializer)
            }
            parts => parts.serialize(serializer),
        }
    }
}

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

    /// The type of a custom call, and its member.
    pub(crate) const CUSTOM: &str = "custom";

    /// Creates a custom call of OpenAI, whose argument is a string: the member `input`, so that every vendor can read it.
    pub(crate) fn custom(id: String, name: String, input: &str) -> Self {
        let mut arguments = String::new();
        Writer::compact(&mut arguments).object(|w| {
            w.field(INPUT, input);
        });
        Self { other: Value::parse(r#"{"custom":true}"#).ok(), ..Self::new(id, name, arguments) }
    }

    /// Returns the text of a custom call; none for a call of a function.
    pub(crate) fn custom_input(&self) -> Option<String> {
        member(&self.other, Self::CUSTOM).and_then(Node::as_bool).filter(|is_custom| *is_custom)?;
        Value::parse(&self.arguments).ok()?.get_str(INPUT).map(str::to_owned)
    }
}

/// The argument of a custom call.
const INPUT: &str = "input";

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

#[cfg(test)]
mod tests;
