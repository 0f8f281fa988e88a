use std::fmt;

use cog_json::{Node, ToJson, Value, Writer};

use crate::{Part, Problem, ToolCall, read};

/// The author of a message (appendix A.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        }
    }

    /// Creates a system message with one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Part::text(text)])
    }

    /// Creates a user message with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    /// Creates an assistant message with one text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }

    /// Reads and checks a single message. `path` is its path in the document, such as `messages[0]`.
    ///
    /// # Errors
    /// All problems of the message, not only the first.
    pub fn read(node: Node<'_>, path: &str) -> Result<Self, Vec<Problem>> {
        read::message(node, path)
    }

    /// Returns the text of the message: its text parts, concatenated.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }
}

impl ToJson for Message {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("id", &self.id);
            w.field("role", self.role.as_str());
            w.optional("name", &self.name);
            w.optional("created_at", &self.created_at);
            w.field("content", &Content(self));
            if !self.tool_calls.is_empty() {
                w.field("tool_calls", &self.tool_calls);
            }
            w.optional("tool_call_id", &self.tool_call_id);
            w.optional("metadata", &self.metadata);
        });
    }
}

/// `content` in the form that the role of the message requires (ruling R63).
struct Content<'a>(&'a Message);

impl ToJson for Content<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let plain = matches!(self.0.role, Role::Assistant | Role::Tool);
        match self.0.content.as_slice() {
            [] if plain => w.null(),
            [Part::Text(text)] if plain && text.index.is_none() => w.string(&text.text),
            parts => parts.write_json(w),
        }
    }
}

/// An ordered list of messages.
#[derive(Debug, Clone, PartialEq, Default)]
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

    /// Reads an array of messages.
    ///
    /// # Errors
    /// All problems of all messages.
    pub fn read(node: Node<'_>) -> Result<Self, Vec<Problem>> {
        read::conversation(node)
    }
}

impl ToJson for Conversation {
    fn write_json(&self, w: &mut Writer<'_>) {
        self.0.write_json(w);
    }
}

#[cfg(test)]
mod tests;
