use cog_json::Value;
use serde::Serialize;

use super::links::Links;
use crate::{Message, NativePart, Part, Role, ToolCall, media_text::media_text};

/// What a message contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content<'a> {
    /// A text.
    Text {
        /// The text.
        text: &'a str,
    },
    /// The text with which a model refuses.
    Refusal {
        /// The text.
        text: &'a str,
    },
    /// An image, audio or a file, without its bytes.
    Media {
        /// `image`, `audio` or `file`.
        kind: &'static str,
        /// Its media type, name or URL: `image/gif, 1x1`.
        description: String,
    },
    /// A part that only one provider reads.
    Native {
        /// The name of the provider.
        provider: &'a str,
    },
    /// A tool call.
    ToolCall {
        /// The id of the call.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The arguments, JSON as text.
        arguments: &'a str,
        /// Whether a message contains the result.
        has_result: bool,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        call_id: &'a str,
        /// The name of the tool; null if neither the message nor a call has it.
        name: Option<&'a str>,
        /// `success`, `error`, `halted`, or another word; null if the result is not JSON with a status.
        status: Option<String>,
        /// The result.
        text: &'a str,
    },
}

/// Returns the content of a message, its calls last.
pub(super) fn content<'a>(message: &'a Message, links: &Links<'a>) -> Vec<Content<'a>> {
    let parts = message.content.iter().map(part);
    let calls = message.tool_calls.iter().map(|call| call_of(call, links));
    let mut content: Vec<Content<'a>> = parts.chain(calls).collect();
    if message.role == Role::Tool {
        set_result(&mut content, message, links);
    }
    content
}

fn part(part: &Part) -> Content<'_> {
    match part {
        Part::Text(text) => Content::Text { text: &text.text },
        Part::Refusal(refusal) => Content::Refusal { text: &refusal.refusal },
        Part::Native(NativePart { provider, .. }) => Content::Native { provider },
        Part::Image(_) | Part::Audio(_) | Part::File(_) | Part::FileReference(_) => {
            let (kind, description) = media_text(part).unwrap_or_default();
            Content::Media { kind, description }
        }
    }
}

fn call_of<'a>(call: &'a ToolCall, links: &Links<'a>) -> Content<'a> {
    let ToolCall { id, name, arguments, .. } = call;
    Content::ToolCall { id, name, arguments, has_result: links.results.contains(id.as_str()) }
}

/// Turns the first text of a tool message into the result; without a text, the result is empty.
fn set_result<'a>(content: &mut Vec<Content<'a>>, message: &'a Message, links: &Links<'a>) {
    let text = content.iter().enumerate().find_map(|(at, item)| match item {
        Content::Text { text } => Some((at, *text)),
        _ => None,
    });
    let call_id = message.tool_call_id.as_deref().unwrap_or_default();
    let name = message.name.as_deref().or_else(|| links.names.get(call_id).copied());
    let result = |text| Content::ToolResult { call_id, name, status: status(text), text };
    match text {
        Some((at, text)) => content.splice(at..=at, [result(text)]).for_each(drop),
        None => content.insert(0, result("")),
    }
}

/// Returns `status` of a result in the form of docs/tools.md.
fn status(text: &str) -> Option<String> {
    let result = Value::parse(text).ok()?;
    result.get("status")?.as_str().map(str::to_owned)
}
