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
pub(crate) struct Reply<'a> {
    state: &'a mut ReplyState,
    out: &'a mut Vec<ModelEvent>,
}

/// What a decoder remembers of one reply between its frames.
#[derive(Default)]
pub(crate) struct ReplyState {
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
    parts: ReasoningParts,
    /// The index of the last message that is not part of the answer.
    commentary: Option<u32>,
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

impl ReplyState {
    /// Returns the writer of its next events.
    pub(crate) fn writer<'a>(&'a mut self, out: &'a mut Vec<ModelEvent>) -> Reply<'a> {
        Reply { state: self, out }
    }

    /// Starts a new frame.
    pub(crate) fn begin_frame(&mut self) {
        self.frame = FrameContent::None;
    }

    /// Returns the byte range of the text in a frame that contained nothing else.
    pub(crate) fn only_text(&self) -> Option<Range<usize>> {
        match &self.frame {
            FrameContent::Text(range) => Some(range.clone()),
            FrameContent::None | FrameContent::Other => None,
        }
    }
}

impl Reply<'_> {
    /// Returns whether any content has been emitted: text, reasoning, a refusal, a tool call or a media item.
    pub(crate) fn has_content(&self) -> bool {
        self.state.has_content
    }

    /// Emits the model's name and the reply's ID once, from the first chunk that contains `model` or `id`.
    pub(crate) fn start(&mut self, node: Node<'_>) {
        self.start_with(node, "model", "id");
    }

    /// Emits the model's name and the reply's ID once, from the first chunk that contains one of these members.
    pub(crate) fn start_with(&mut self, node: Node<'_>, model: &str, id: &str) {
        if self.state.started {
            return;
        }
        self.state.frame = FrameContent::Other;
        let model = string(node, model).filter(|model| !model.is_empty());
        let id = string(node, id).filter(|id| !id.is_empty());
        self.state.started = model.is_some() || id.is_some();
        if self.state.started {
            let fingerprint = string(node, "system_fingerprint").filter(|print| !print.is_empty());
            self.out.push(ModelEvent::Started { model, id, fingerprint });
        }
    }

    /// Emits text of the answer.
    pub(crate) fn text(&mut self, node: Option<Node<'_>>) {
        let Some(text) = node.and_then(Node::as_str).filter(|text| !text.is_empty()) else { return };
        let range = node.and_then(Node::literal_range);
        self.state.frame = match (&self.state.frame, range) {
            (FrameContent::None, Some(range)) => FrameContent::Text(range),
            _ => FrameContent::Other,
        };
        self.push_text(text);
    }

    /// Emits text from a frame without other contents. Texts from the same read are merged into one event.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.state.has_content = true;
        match self.out.last_mut() {
            Some(ModelEvent::Text(before)) => before.push_str(text),
            _ => self.out.push(ModelEvent::Text(text.to_owned())),
        }
    }

    /// Emits text of the reasoning.
    pub(crate) fn reasoning(&mut self, text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.content();
        match self.out.last_mut() {
            Some(ModelEvent::Reasoning(before)) => before.push_str(text),
            _ => self.out.push(ModelEvent::Reasoning(text.to_owned())),
        }
    }

    /// Emits a complete item of the reasoning, for a later request.
    pub(crate) fn reasoning_item(&mut self, item: Value) {
        self.content();
        self.out.push(ModelEvent::ReasoningItem(item));
    }

    /// Emits a complete media item.
    pub(crate) fn media(&mut self, media: ModelMedia) {
        self.content();
        self.out.push(ModelEvent::Media(media));
    }

    /// Returns the reasoning that a later request sends back.
    pub(crate) fn parts(&mut self) -> &mut ReasoningParts {
        &mut self.state.parts
    }

    /// Sets the index of a message that comments on the work; `None` if the current message is the answer.
    pub(crate) fn set_commentary(&mut self, index: Option<u32>) {
        self.state.commentary = index;
    }

    /// Returns whether the message at this index comments on the work.
    pub(crate) fn is_commentary(&self, index: u32) -> bool {
        self.state.commentary == Some(index)
    }

    /// Notes that the frame contains content other than text of the answer.
    fn content(&mut self) {
        self.state.has_content = true;
        self.state.frame = FrameContent::Other;
    }

    /// Returns the index for a complete tool call without an index of its own.
    pub(crate) fn next_call(&mut self) -> u32 {
        self.state.frame = FrameContent::Other;
        self.state.calls += 1;
        self.state.calls - 1
    }

    /// Emits part of a tool call.
    pub(crate) fn tool_call(&mut self, call: ToolCallDelta) {
        self.content();
        self.state.has_calls = true;
        self.out.push(ModelEvent::ToolCall(call));
    }

    /// Adds text of the model's refusal.
    pub(crate) fn refusal(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.content();
            self.state.refusal.push_str(text);
        }
    }

    /// Emits the token usage so far.
    pub(crate) fn usage(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        self.state.frame = FrameContent::Other;
        if self.state.usage.as_ref() != Some(&usage) {
            self.state.usage = Some(usage.clone());
            self.out.push(ModelEvent::Usage(usage));
        }
    }

    /// Returns the most recently reported token usage.
    pub(crate) fn usage_so_far(&self) -> Usage {
        self.state.usage.clone().unwrap_or_default()
    }

    /// Sets the finish reason. The last one applies, but `Stop` does not replace a more serious one.
    pub(crate) fn stop(&mut self, reason: FinishReason) {
        self.state.frame = FrameContent::Other;
        if reason != FinishReason::Stop || self.state.reason.is_none() {
            self.state.reason = Some(reason);
        }
    }

    /// Ends the reply after the protocol's final event.
    pub(crate) fn end(&mut self) {
        self.state.frame = FrameContent::Other;
        if std::mem::replace(&mut self.state.finished, true) {
            return;
        }
        self.out.extend(self.state.parts.members().map(ModelEvent::ReasoningItem));
        let reason = self.state.reason.take().unwrap_or(FinishReason::Stop);
        let reason = match reason {
            FinishReason::Stop if self.state.has_calls => FinishReason::ToolCalls,
            FinishReason::Stop | FinishReason::Refusal(None) if !self.state.refusal.is_empty() => {
                FinishReason::Refusal(Some(std::mem::take(&mut self.state.refusal)))
            }
            reason => reason,
        };
        self.out.push(ModelEvent::Finished(reason));
    }

    /// Handles the end of the connection. Without a finish reason, the reply was interrupted.
    pub(crate) fn close(&mut self) -> Result<(), DecodeError> {
        if !self.state.finished && self.state.reason.is_none() {
            return Err(DecodeError::Incomplete);
        }
        self.end();
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

/// Returns a copy of a member that is a string, even an empty one.
pub(crate) fn string(node: Node<'_>, key: &str) -> Option<String> {
    node.get_str(key).map(str::to_owned)
}

/// Returns the number at a JSON pointer.
pub(crate) fn count(node: Node<'_>, pointer: &str) -> Option<u64> {
    node.pointer(pointer)?.as_u64()
}

/// Returns a member that is an index; `None` if it is missing or does not fit.
pub(crate) fn index(node: Node<'_>, key: &str) -> Option<u32> {
    node.get(key)?.as_u64()?.try_into().ok()
}

/// Returns the elements of a member that is a list; none if it is missing.
pub(crate) fn elements<'a>(node: Node<'a>, key: &str) -> impl Iterator<Item = Node<'a>> + Clone + use<'a> {
    node.get(key).into_iter().flat_map(Node::elements)
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

/// Adds the location that some vendors send next to the message: `param`, or a list `loc`.
fn with_location(message: &str, error: Node<'_>) -> String {
    let location = string(error, "param")
        .unwrap_or_else(|| elements(error, "loc").filter_map(name_or_number).collect::<Vec<_>>().join("."));
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
        match self.details.last_mut().filter(|last| is_same_detail(last, &detail)) {
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

fn is_same_detail(one: &Map<String, Json>, other: &Map<String, Json>) -> bool {
    ["type", "index"].iter().all(|key| one.get(*key) == other.get(*key))
}

/// Appends text, and replaces any other member. `type`, `format` and `id` are repeated in each part.
fn merge(detail: &mut Map<String, Json>, name: String, value: Json) {
    let is_text = matches!(name.as_str(), "text" | "summary" | "data");
    match (detail.get_mut(&name), &value) {
        (Some(Json::String(before)), Json::String(more)) if is_text => before.push_str(more),
        (_, Json::Null) => {}
        _ => drop(detail.insert(name, value)),
    }
}
