//! The order of the events of one reply, which all decoders share.

use std::ops::Range;

use cog_json::{Node, Value};
use cog_spec::{FinishReason, ModelEvent, ModelMedia, ToolCallDelta, Usage};
use serde_json::{Map, Value as Json, json};

use super::{DecodeError, ReachedLimit, VendorError};

/// Emits the events of one reply in order: the model and reply ID, then content, then usage, then one `Finished`.
///
/// The finish reason is emitted at the end of the reply, since vendors send more after it, and some send it more than
/// once.
#[derive(Default)]
pub(crate) struct Reply {
    started: bool,
    reason: Option<FinishReason>,
    refusal: String,
    usage: Option<Usage>,
    finished: bool,
    /// Whether any content has been emitted.
    has_content: bool,
    /// The number of tool calls that arrived complete, without an index.
    calls: u32,
    /// Whether a tool call has been emitted.
    has_calls: bool,
    /// The reasoning to send back in a later request.
    pub(crate) parts: ReasoningParts,
    /// The index of the last message that is not part of the answer.
    pub(crate) commentary: Option<u32>,
    frame: FrameContent,
}

/// The contents of the current frame so far.
#[derive(Default)]
enum FrameContent {
    #[default]
    None,
    /// Only text of the answer, at this byte range of the frame and without escapes.
    Text(Range<usize>),
    /// Any other contents.
    Other,
}

impl Reply {
    /// Starts a new frame.
    pub(crate) fn begin_frame(&mut self) {
        self.frame = FrameContent::None;
    }

    /// Returns whether any content has been emitted: text, reasoning, a refusal, a tool call or a media item.
    pub(crate) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Returns the byte range of the text in a frame that contained nothing else.
    pub(crate) fn only_text(&self) -> Option<Range<usize>> {
        match &self.frame {
            FrameContent::Text(range) => Some(range.clone()),
            FrameContent::None | FrameContent::Other => None,
        }
    }

    /// Emits the model's name and the reply's ID once, from the first chunk that contains them.
    pub(crate) fn start(&mut self, node: Node<'_>, keys: StartKeys, out: &mut Vec<ModelEvent>) {
        let text = |key: &str| {
            let text = node.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        if self.started {
            return;
        }
        self.frame = FrameContent::Other;
        let (model, id, fingerprint) = (text(keys.model), text(keys.id), text("system_fingerprint"));
        self.started = model.is_some() || id.is_some();
        if self.started {
            out.push(ModelEvent::Started { model, id, fingerprint });
        }
    }

    /// Emits text of the answer.
    pub(crate) fn text(&mut self, node: Option<Node<'_>>, out: &mut Vec<ModelEvent>) {
        let Some(text) = node.and_then(Node::as_str).filter(|text| !text.is_empty()) else { return };
        let range = node.and_then(Node::literal_range);
        self.frame = match (&self.frame, range) {
            (FrameContent::None, Some(range)) => FrameContent::Text(range),
            _ => FrameContent::Other,
        };
        self.push_text(text, out);
    }

    /// Emits text from a frame without other contents. Texts from the same read are merged into one event.
    pub(crate) fn push_text(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        self.has_content = true;
        match out.last_mut() {
            Some(ModelEvent::Text(before)) => before.push_str(text),
            _ => out.push(ModelEvent::Text(text.to_owned())),
        }
    }

    /// Emits text of the reasoning.
    pub(crate) fn reasoning(&mut self, text: Option<&str>, out: &mut Vec<ModelEvent>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.content();
        match out.last_mut() {
            Some(ModelEvent::Reasoning(before)) => before.push_str(text),
            _ => out.push(ModelEvent::Reasoning(text.to_owned())),
        }
    }

    /// Emits a complete item of the reasoning, for a later request.
    pub(crate) fn reasoning_item(&mut self, item: Value, out: &mut Vec<ModelEvent>) {
        self.content();
        out.push(ModelEvent::ReasoningItem(item));
    }

    /// Emits a complete media item.
    pub(crate) fn media(&mut self, media: ModelMedia, out: &mut Vec<ModelEvent>) {
        self.content();
        out.push(ModelEvent::Media(media));
    }

    /// Notes that the frame contains content other than text of the answer.
    fn content(&mut self) {
        self.has_content = true;
        self.frame = FrameContent::Other;
    }

    /// Returns the index for a complete tool call without an index of its own.
    pub(crate) fn next_call(&mut self) -> u32 {
        self.frame = FrameContent::Other;
        self.calls += 1;
        self.calls - 1
    }

    /// Emits part of a tool call.
    pub(crate) fn tool_call(&mut self, call: ToolCallDelta, out: &mut Vec<ModelEvent>) {
        self.content();
        self.has_calls = true;
        out.push(ModelEvent::ToolCall(call));
    }

    /// Adds text of the model's refusal.
    pub(crate) fn refusal(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.content();
            self.refusal.push_str(text);
        }
    }

    /// Emits the token usage so far.
    pub(crate) fn usage(&mut self, usage: Option<Usage>, out: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        self.frame = FrameContent::Other;
        if self.usage.as_ref() != Some(&usage) {
            self.usage = Some(usage.clone());
            out.push(ModelEvent::Usage(usage));
        }
    }

    /// Returns the most recently reported token usage.
    pub(crate) fn usage_so_far(&self) -> Usage {
        self.usage.clone().unwrap_or_default()
    }

    /// Sets the finish reason. The last one applies, but `Stop` does not replace a more serious one.
    pub(crate) fn stop(&mut self, reason: FinishReason) {
        self.frame = FrameContent::Other;
        if reason != FinishReason::Stop || self.reason.is_none() {
            self.reason = Some(reason);
        }
    }

    /// Ends the reply after the protocol's final event.
    pub(crate) fn end(&mut self, out: &mut Vec<ModelEvent>) {
        self.frame = FrameContent::Other;
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        out.extend(self.parts.members().map(ModelEvent::ReasoningItem));
        let reason = self.reason.take().unwrap_or(FinishReason::Stop);
        let reason = match reason {
            FinishReason::Stop if self.has_calls => FinishReason::ToolCalls,
            FinishReason::Stop | FinishReason::Refusal(None) if !self.refusal.is_empty() => {
                FinishReason::Refusal(Some(std::mem::take(&mut self.refusal)))
            }
            reason => reason,
        };
        out.push(ModelEvent::Finished(reason));
    }

    /// Handles the end of the connection. Without a finish reason, the reply was interrupted.
    pub(crate) fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if !self.finished && self.reason.is_none() {
            return Err(DecodeError::Incomplete);
        }
        self.end(out);
        Ok(())
    }
}

/// Fails if a reply has a member `error` with an error of the vendor.
pub(crate) fn check_error(reply: Node<'_>) -> Result<(), DecodeError> {
    match reply.get("error").and_then(|_| vendor_error(reply)) {
        Some(error) => Err(DecodeError::Vendor(error)),
        None => Ok(()),
    }
}

/// The keys under which a vendor sends the model's name and the reply's ID.
#[derive(Clone, Copy)]
pub(crate) struct StartKeys {
    pub(crate) model: &'static str,
    pub(crate) id: &'static str,
}

/// Returns the error in a body, in any of the formats that vendors use: `{error: {message, code | type | status}}`,
/// `{error: text}`, `{message}`, `{detail}`, or an array of one of these.
pub(crate) fn vendor_error(body: Node<'_>) -> Option<VendorError> {
    let body = if body.is_array() { body.at(0)? } else { body };
    let member =
        ["error", "errors", "detail"].iter().find_map(|key| body.get(key).filter(|error| !error.is_null()));
    let error = member.unwrap_or(body);
    let error = if error.is_array() { error.at(0)? } else { error };
    if let Some(message) = error.as_str() {
        let limit = ReachedLimit::read(error, message);
        return Some(VendorError { code: None, message: message.to_owned(), limit });
    }
    let message = ["message", "msg", "detail", "error"].iter().find_map(|key| error.get(key)?.as_str());
    let code = ["code", "type", "status"].iter().find_map(|key| error.get(key).and_then(name_or_number));
    let message = message?;
    let limit = ReachedLimit::read(error, message);
    Some(VendorError { code, message: with_location(message, error), limit })
}

/// Adds the location that some vendors send beside the message: `param`, or a list `loc`.
fn with_location(message: &str, error: Node<'_>) -> String {
    let steps = || error.get("loc").into_iter().flat_map(Node::elements).filter_map(name_or_number);
    let param = error.get("param").and_then(Node::as_str).map(str::to_owned);
    let location = param.unwrap_or_else(|| steps().collect::<Vec<_>>().join("."));
    if location.is_empty() || message.contains(&location) {
        return message.to_owned();
    }
    format!("{message} ({location})")
}

fn name_or_number(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned).or_else(|| node.as_i64().map(|number| number.to_string()))
}

// The reasoning of a reply, in the form in which the next request sends it back.

/// Collects the reasoning of one reply.
#[derive(Default)]
pub(crate) struct ReasoningParts {
    /// The members of a message that contain reasoning as text, by name.
    texts: Vec<(&'static str, String)>,
    /// `reasoning_details`, as OpenRouter and MiniMax send it.
    details: Vec<Map<String, Json>>,
    /// The block of Anthropic that is arriving.
    block: Option<Block>,
    /// Whether a block is complete.
    has_blocks: bool,
}

/// A block of reasoning that arrives in parts.
#[derive(Default)]
struct Block {
    thinking: String,
    signature: String,
}

impl ReasoningParts {
    /// Adds to the text of a member.
    pub(crate) fn text(&mut self, name: &'static str, text: &str) {
        match self.texts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => before.push_str(text),
            None => self.texts.push((name, text.to_owned())),
        }
    }

    /// Adds an element of `reasoning_details`. Parts of one element have the same type and index.
    pub(crate) fn detail(&mut self, detail: Node<'_>) {
        let Json::Object(detail) = detail.to_serde() else { return };
        let key = |detail: &Map<String, Json>| (detail.get("type").cloned(), detail.get("index").cloned());
        match self.details.last_mut().filter(|last| key(last) == key(&detail)) {
            Some(last) => detail.into_iter().for_each(|(name, value)| merge(last, name, value)),
            None => self.details.push(detail),
        }
    }

    /// Returns the members of the reply's message that contain its reasoning, as an object.
    pub(crate) fn members(&mut self) -> Option<Value> {
        let texts = std::mem::take(&mut self.texts).into_iter();
        let mut members: Map<String, Json> =
            texts.map(|(name, text)| (name.to_owned(), Json::String(text))).collect();
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            members.insert("reasoning_details".to_owned(), details.into_iter().map(Json::Object).collect());
        }
        (!members.is_empty()).then(|| Value::from(Json::Object(members)))
    }

    /// Starts a block, or adds a part to it.
    pub(crate) fn block(&mut self, thinking: Option<&str>, signature: Option<&str>) {
        let block = self.block.get_or_insert_default();
        block.thinking.push_str(thinking.unwrap_or_default());
        block.signature.push_str(signature.unwrap_or_default());
    }

    /// Ends the block. Returns it if it has a signature, without which it cannot be sent back.
    pub(crate) fn end_block(&mut self) -> Option<Value> {
        let Block { thinking, signature } = self.block.take().filter(|block| !block.signature.is_empty())?;
        self.has_blocks = true;
        Some(json!({ "type": "thinking", "thinking": thinking, "signature": signature }).into())
    }

    /// Notes a block that arrived complete.
    pub(crate) fn complete_block(&mut self) {
        self.has_blocks = true;
    }

    /// Returns whether a block is complete.
    pub(crate) fn has_blocks(&self) -> bool {
        self.has_blocks
    }
}

/// Appends a text, and replaces any other member. `type`, `format` and `id` are repeated in each part.
fn merge(detail: &mut Map<String, Json>, name: String, value: Json) {
    let is_text = matches!(name.as_str(), "text" | "summary" | "data");
    match (detail.get_mut(&name), &value) {
        (Some(Json::String(before)), Json::String(more)) if is_text => before.push_str(more),
        (_, Json::Null) => {}
        _ => drop(detail.insert(name, value)),
    }
}
