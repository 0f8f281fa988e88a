//! Inputs, messages and answers in spans, if the operator asks for them.

use std::{borrow::Cow, sync::Arc};

use cog_run::{
    RunInput, ToJson as _,
    events::{CallReport, RunReport, ToolReport},
    provider::{Conversation, FinishReason, Part, Role, ToolCall},
};
use serde_json::json;

use crate::names::{self, Attributes};

/// Masks keys in a string.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The minimum length of a string that may contain a key, in bytes. Shorter keys are not masked anywhere.
const MIN_KEY: usize = 8;

/// Masks the keys in a string.
pub(crate) fn masked<'t>(redact: &Redact, text: &'t str) -> Cow<'t, str> {
    if text.len() < MIN_KEY { Cow::Borrowed(text) } else { Cow::Owned(redact(text)) }
}

/// How content is recorded.
pub(crate) struct Recorded<'a> {
    /// Masks keys.
    pub(crate) redact: &'a Redact,
    /// Whether inputs, messages and answers are recorded.
    pub(crate) is_on: bool,
    /// The maximum length of a string in bytes.
    pub(crate) limit: usize,
}

impl Recorded<'_> {
    /// Masks the keys in the name of a span. Clients and vendors choose the names of models.
    pub(crate) fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        masked(self.redact, name)
    }

    pub(crate) fn run(&self, run: &RunReport<'_>, out: &mut impl Attributes) {
        if !self.is_on {
            return;
        }
        if let Some(input) = run.input {
            let parts = vec![self.text(&input_json(input))];
            out.text(names::INPUT_MESSAGES, &json!([{ "role": "user", "parts": parts }]).to_string());
        }
        if let Some(output) = run.output {
            let parts = vec![self.text(&output.to_json())];
            let message = json!([{ "role": "assistant", "parts": parts, "finish_reason": "stop" }]);
            out.text(names::OUTPUT_MESSAGES, &message.to_string());
        }
    }

    pub(crate) fn call(&self, call: &CallReport<'_>, out: &mut impl Attributes) {
        if !self.is_on {
            return;
        }
        if let Some(input) = call.input {
            let (system, messages) = self.messages(input);
            if !system.is_empty() {
                out.text(names::SYSTEM_INSTRUCTIONS, &json!(system).to_string());
            }
            out.text(names::INPUT_MESSAGES, &json!(messages).to_string());
        }
        if let Some(output) = call.output {
            let text = (!output.is_empty()).then(|| self.text(output));
            let parts: Vec<_> =
                text.into_iter().chain(call.tool_calls.iter().map(|call| self.tool_call(call))).collect();
            let finish = call.finish.map_or("error", finish_reason);
            let message = json!([{ "role": "assistant", "parts": parts, "finish_reason": finish }]);
            out.text(names::OUTPUT_MESSAGES, &message.to_string());
        }
    }

    pub(crate) fn tool(&self, tool: &ToolReport<'_>, out: &mut impl Attributes) {
        if self.is_on {
            out.optional(names::TOOL_ARGUMENTS, tool.arguments.map(|text| self.cut(text)));
            out.optional(names::TOOL_RESULT, tool.result.map(|text| self.cut(text)));
        }
    }

    /// Returns the text of an error, if content is recorded.
    pub(crate) fn message(&self, message: Option<&str>) -> Option<String> {
        let message = message.filter(|_| self.is_on)?;
        Some((self.redact)(self.cut(message)))
    }

    /// Returns a string without keys, up to the limit.
    pub(crate) fn explanation(&self, text: &str) -> String {
        (self.redact)(self.cut(text))
    }

    /// Returns the parts of the system message, and the other messages.
    fn messages(&self, messages: &Conversation) -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
        let mut system = Vec::new();
        let mut others = Vec::new();
        for message in messages.messages() {
            let mut parts: Vec<_> = message.content.iter().map(|part| self.part(part)).collect();
            parts.extend(message.tool_calls.iter().map(|call| self.tool_call(call)));
            match (message.role, &message.tool_call_id) {
                (Role::System, _) => system.append(&mut parts),
                (Role::Tool, Some(id)) => {
                    let response = json!({ "type": "tool_call_response", "id": id, "response": self.cut(&message.text()) });
                    others.push(json!({ "role": "tool", "parts": [response] }));
                }
                (role, _) => others.push(json!({ "role": role.as_str(), "parts": parts })),
            }
        }
        (system, others)
    }

    fn text(&self, text: &str) -> serde_json::Value {
        json!({ "type": "text", "content": self.cut(text) })
    }

    /// Media are named, not contained.
    fn part(&self, part: &Part) -> serde_json::Value {
        let modality = match part {
            Part::Text(text) => return self.text(&text.text),
            Part::Image(_) => "image",
            Part::Audio(_) => "audio",
            _ => "file",
        };
        json!({ "type": "blob", "modality": modality })
    }

    fn tool_call(&self, call: &ToolCall) -> serde_json::Value {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(self.cut(&call.arguments)));
        json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
    }

    fn cut<'t>(&self, text: &'t str) -> &'t str {
        text.get(..text.floor_char_boundary(self.limit)).unwrap_or_default()
    }
}

/// Returns the input as JSON: with text and other fields, an array of both.
fn input_json(input: &RunInput) -> String {
    match input {
        RunInput::Json(value) => value.to_json(),
        RunInput::Args(text) => json!(text).to_string(),
        RunInput::ArgsWith(text, fields) => format!("[{},{}]", json!(text), fields.to_json()),
        _ => String::new(),
    }
}

/// Returns the name of a reason in the conventions.
pub(crate) fn finish_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Refusal(_) | FinishReason::ContentFilter => "content_filter",
        FinishReason::ToolCalls => "tool_call",
        FinishReason::Continue(_) => "continue",
        FinishReason::Other(reason) => reason,
    }
}
