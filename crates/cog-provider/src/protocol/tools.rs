//! What the request mappings share about tools.

use cog_harmony::{Message, Part, Role, ToolCall, ToolChoice, ToolDefinition};
use cog_json::{Value, Writer};
use cog_spec::Effort;

use super::{
    RequestContext,
    parts::{is_tool_name, projected},
};
use crate::{
    RequestError, ToolRequest,
    vendors::{ToolSettings, ToolSupport},
};

impl RequestContext<'_> {
    /// Returns how the model uses tools.
    pub(crate) fn tool_settings(&self) -> &'static ToolSettings {
        self.vendor.tools_of(self.model)
    }

    /// Checks that the model supports the tools of the request, and the tool calls of its messages.
    pub(crate) fn check_tools(&self) -> Result<(), RequestError> {
        let settings = self.tool_settings();
        let vendor = self.vendor.title;
        let model = self.model.to_owned();
        if !settings.supported && (self.request.tools.is_some() || self.has_calls()) {
            return Err(RequestError::Tools { vendor, model });
        }
        let Some(tools) = &self.request.tools else { return Ok(()) };
        if let Some(tool) = tools.definitions.iter().find(|tool| !is_tool_name(&tool.name)) {
            return Err(RequestError::ToolName { name: tool.name.clone() });
        }
        if projected(self).is_some() && !settings.with_schema {
            return Err(RequestError::SchemaWithTools { vendor, model });
        }
        let is_forced = matches!(tools.choice, ToolChoice::Required | ToolChoice::Named(_));
        match is_forced && !self.allows(settings.forced) {
            true => Err(RequestError::ForcedTool { vendor, model }),
            false => Ok(()),
        }
    }

    fn has_calls(&self) -> bool {
        let mut messages = self.request.messages.messages().iter();
        messages.any(|message| message.role == Role::Tool || !message.tool_calls.is_empty())
    }

    /// Checks that the model supports the tools of the request over Chat Completions.
    pub(crate) fn check_tools_over_chat(&self) -> Result<(), RequestError> {
        if self.request.tools.is_none() {
            return Ok(());
        }
        let vendor = self.vendor.title;
        let model = self.model.to_owned();
        let effort = self.request.generation.effort;
        match self.tool_settings().over_chat {
            ToolSupport::Rejected => Err(RequestError::ToolsOverChat { vendor, model }),
            ToolSupport::WithoutReasoning if effort.is_some_and(|effort| effort != Effort::None) => {
                Err(RequestError::EffortWithTools { vendor, model })
            }
            ToolSupport::WithoutReasoning | ToolSupport::Accepted => Ok(()),
        }
    }

    fn allows(&self, support: ToolSupport) -> bool {
        match support {
            ToolSupport::Accepted => true,
            ToolSupport::WithoutReasoning => self.request.generation.effort == Some(Effort::None),
            ToolSupport::Rejected => false,
        }
    }

    /// Returns the items of the model's reasoning before a message. Only the vendor that sent them can read them.
    pub(crate) fn own_reasoning<'m>(&self, message: &'m Message) -> &'m [Value] {
        let own = message.reasoning.as_ref().filter(|reasoning| reasoning.provider == self.vendor.name);
        own.map_or(&[], |reasoning| &reasoning.items)
    }

    /// Writes the members of a message that contain its reasoning, for models that require them back.
    pub(crate) fn write_reasoning_members(&self, w: &mut Writer<'_>, message: &Message) {
        let names = self.tool_settings().reasoning;
        if self.request.tools.is_none() {
            return;
        }
        for (key, value) in self.own_reasoning(message).iter().flat_map(Value::members) {
            if names.contains(&key) {
                w.field(key, &value);
            }
        }
    }
}

/// A turn of the conversation.
pub(crate) enum Turn<'a> {
    /// An unchanged message.
    Message(&'a Message),
    /// A user's text.
    Text(String),
    /// The results of the calls of one message.
    Results(Vec<ToolResult<'a>>),
}

/// The result of a call.
pub(crate) struct ToolResult<'a> {
    /// The identifier of the call.
    pub(crate) id: &'a str,
    /// The name of the tool.
    pub(crate) name: &'a str,
    /// The message that contains the result.
    pub(crate) message: &'a Message,
}

impl ToolResult<'_> {
    /// Returns the parts of the result that are not text.
    pub(crate) fn media(&self) -> impl Iterator<Item = &Part> {
        self.message.content.iter().filter(|part| part.as_text().is_none())
    }
}

/// Returns the turns of a conversation: adjacent results are one turn.
pub(crate) fn turns<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    let mut calls: &[ToolCall] = &[];
    for message in messages {
        if message.role != Role::Tool {
            calls = message.tool_calls.as_slice();
            turns.push(Turn::Message(message));
            continue;
        }
        let result = result_of(message, calls);
        match turns.last_mut() {
            Some(Turn::Results(results)) => results.push(result),
            _ => turns.push(Turn::Results(vec![result])),
        }
    }
    turns
}

fn result_of<'a>(message: &'a Message, calls: &'a [ToolCall]) -> ToolResult<'a> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let called = calls.iter().find(|call| call.id == id).map(|call| call.name.as_str());
    ToolResult { id, name: called.or(message.name.as_deref()).unwrap_or_default(), message }
}

/// Returns the message of a user with the media of results, for a form in which results are only text.
pub(crate) fn media_message(results: &[ToolResult<'_>]) -> Option<Message> {
    let mut parts = Vec::new();
    for result in results.iter().filter(|result| result.media().next().is_some()) {
        parts.push(Part::text(format!("Media in the result of `{}` ({}):", result.name, result.id)));
        parts.extend(result.media().cloned());
    }
    (!parts.is_empty()).then(|| Message::new(Role::User, parts))
}

/// Writes `{type: function, function: {…}}`, which most vendors use.
pub(crate) fn function_tool(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("type", "function").key("function").object(|w| function_members(w, tool));
    });
}

fn function_members(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.field("name", &tool.name).field("description", &tool.description);
    w.field("parameters", &tool.parameters);
    if tool.strict {
        w.field("strict", &true);
    }
}

/// Returns the choice as OpenAI's protocols name it; `None` for the default and for a named tool.
pub(crate) fn choice_name(tools: &ToolRequest) -> Option<&'static str> {
    match tools.choice {
        ToolChoice::Auto | ToolChoice::Named(_) => None,
        ToolChoice::None => Some("none"),
        ToolChoice::Required => Some("required"),
    }
}
