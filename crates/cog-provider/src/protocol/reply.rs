//! The order of the events of one reply, which all decoders share.

use std::ops::Range;

use cog_json::{Node, Value};
use cog_spec::{FinishReason, ModelEvent, ModelMedia, TokenProbability, ToolCallDelta, Usage};
use serde_json::{Map, Value as Json, json};

use super::{DecodeError, VendorError};

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
    failure: Option<Failure>,
    /// The beginning of the answer's text, where servers without an error object write what went wrong.
    beginning: String,
    refusal: String,
    usage: Option<Usage>,
    finished: bool,
    /// Whether any content has been emitted.
    has_content: bool,
    /// The identifiers of the tool calls without an index, by their position.
    calls: Vec<Option<String>>,
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

/// A finish reason that reports a failure of the vendor.
struct Failure {
    reason: String,
    message: Option<String>,
}

/// The maximum size of the text that an error quotes, in bytes.
const MAX_QUOTED: usize = 300;

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
        let model = string(node, model).filter(|model| !model.is_empty()).map(without_directory);
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
        let room = MAX_QUOTED.saturating_sub(self.state.beginning.len());
        if room > 0 {
            let quoted = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
            self.state.beginning.push_str(quoted);
        }
        match self.out.last_mut() {
            Some(ModelEvent::Text(before)) => before.push_str(text),
            _ => self.out.push(ModelEvent::Text(text.to_owned())),
        }
    }

    /// Emits the tokens of the text before, with their probabilities.
    pub(crate) fn tokens(&mut self, tokens: Vec<TokenProbability>) {
        if !tokens.is_empty() {
            self.content();
            self.out.push(ModelEvent::Tokens(tokens));
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
        self.add_call(None)
    }

    /// Returns the index for a part of a tool call without an index of its own. A part with a new identifier, or with
    /// only a name, begins a call; any other part belongs to the last one.
    pub(crate) fn call_index(&mut self, id: Option<&str>, has_name: bool) -> u32 {
        let calls = &self.state.calls;
        let known = match id.filter(|id| !id.is_empty()) {
            Some(id) => calls.iter().position(|known| known.as_deref() == Some(id)),
            None if has_name => None,
            None => calls.len().checked_sub(1),
        };
        match known.and_then(|position| u32::try_from(position).ok()) {
            Some(index) => index,
            None => self.add_call(id.map(str::to_owned)),
        }
    }

    fn add_call(&mut self, id: Option<String>) -> u32 {
        self.state.frame = FrameContent::Other;
        self.state.calls.push(id);
        u32::try_from(self.state.calls.len() - 1).unwrap_or(u32::MAX)
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
        // Some vendors repeat the counts in each chunk, and listeners would report each of them.
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
        self.stop_with(reason, None);
    }

    /// Sets the finish reason, with what the vendor says about it. A reason that no protocol defines may still say that
    /// the vendor failed, or that a filter stopped the reply (ruling R83).
    pub(crate) fn stop_with(&mut self, reason: FinishReason, message: Option<&str>) {
        self.state.frame = FrameContent::Other;
        let reason = match reason {
            FinishReason::Other(reason) if reports_filter(&reason) => FinishReason::ContentFilter,
            FinishReason::Other(reason) if reports_failure(&reason) => {
                // The error is returned at the end of the reply: until then, the counts of its tokens may arrive.
                let message = message.map(str::to_owned);
                self.state.failure = Some(Failure { reason, message });
                return;
            }
            reason => reason,
        };
        // OpenAI's protocol sends the reason once, but gateways repeat it in their own last chunk, as `stop`.
        if reason != FinishReason::Stop || self.state.reason.is_none() {
            self.state.reason = Some(reason);
        }
    }

    /// Ends the reply after the protocol's final event.
    ///
    /// # Errors
    /// Fails if the finish reason reports a failure of the vendor.
    pub(crate) fn end(&mut self) -> Result<(), DecodeError> {
        self.state.frame = FrameContent::Other;
        if std::mem::replace(&mut self.state.finished, true) {
            return Ok(());
        }
        if let Some(Failure { reason, message }) = self.state.failure.take() {
            let message = message.or_else(|| self.words_of_server());
            return Err(DecodeError::Failed { reason, message });
        }
        self.out.extend(self.state.parts.members().map(ModelEvent::ReasoningItem));
        let reason = self.state.reason.take().unwrap_or(FinishReason::Stop);
        let reason = match reason {
            // Several servers end a reply that calls tools like any other.
            FinishReason::Stop if self.state.has_calls => FinishReason::ToolCalls,
            // A refusal has a member of its own next to the text, and the reason of a normal end.
            FinishReason::Stop | FinishReason::Refusal(None) if !self.state.refusal.is_empty() => {
                FinishReason::Refusal(Some(std::mem::take(&mut self.state.refusal)))
            }
            reason => reason,
        };
        self.out.push(ModelEvent::Finished(reason));
        Ok(())
    }

    /// Returns the text of a failed reply, unless it is the beginning of an answer.
    fn words_of_server(&self) -> Option<String> {
        let text = self.state.beginning.trim();
        let is_answer = text.is_empty() || text.starts_with(['{', '[', '<', '`']);
        (!is_answer).then(|| text.to_owned())
    }

    /// Handles the end of the connection. Without a finish reason, the reply was interrupted.
    pub(crate) fn close(&mut self) -> Result<(), DecodeError> {
        if !self.state.finished && self.state.reason.is_none() && self.state.failure.is_none() {
            return Err(DecodeError::Incomplete);
        }
        self.end()
    }
}

/// Returns the name of a model. Local servers name it by the path of its file, which is of no use elsewhere and shows directories
/// of the server: `/srv/models/SmolLM2.gguf` is `SmolLM2`. A name such as `owner/model` stays.
fn without_directory(model: String) -> String {
    let has_drive =
        matches!(model.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if !model.starts_with('/') && !has_drive {
        return model;
    }
    let name = model.rsplit(['/', '\\']).find(|part| !part.is_empty());
    name.map_or_else(|| model.clone(), |name| name.strip_suffix(".gguf").unwrap_or(name).to_owned())
}

/// Parts of finish reasons that report a failure of the vendor, in lower case: `error`, `MALFORMED_FUNCTION_CALL`,
/// `abort`, `insufficient_system_resource`, `UNEXPECTED_TOOL_CALL`.
const FAILURES: &[&str] = &[
    "error",
    "malformed",
    "abort",
    "fail",
    "cancel",
    "timeout",
    "timed_out",
    "insufficient",
    "overload",
    "unexpected",
    "invalid",
    "missing",
    "too_many",
];
/// Parts of finish reasons of a filter, in lower case: `SAFETY`, `guardrail_intervened`.
const FILTERS: &[&str] = &[
    "filter",
    "safety",
    "block",
    "prohibited",
    "recitation",
    "spii",
    "moderation",
    "policy",
    "guardrail",
    "sensitive",
    "armor",
    "escalation",
    "toxic",
];

/// Returns whether a finish reason reports a failure of the vendor, in any vendor's words.
fn reports_failure(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    FAILURES.iter().any(|part| reason.contains(part))
}

/// Returns whether a finish reason reports a filter. A malformed call has one of these words in a gateway's reason:
/// `function_call_filter: MALFORMED_FUNCTION_CALL`.
fn reports_filter(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    FILTERS.iter().any(|part| reason.contains(part)) && !reason.contains("malformed")
}

/// Fails if a reply has a member `error` with an error of the vendor.
pub(crate) fn check_error(reply: Node<'_>) -> Result<(), DecodeError> {
    match reply.get("error").and_then(|_| VendorError::read(reply)) {
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

#[cfg(test)]
mod tests {
    use super::without_directory;

    #[test]
    fn directories_of_a_server_are_not_part_of_the_name() {
        for (reported, name) in [
            ("/srv/models/SmolLM2-135M.Q4_1.gguf", "SmolLM2-135M.Q4_1"),
            ("/models/Qwen3/", "Qwen3"),
            (r"C:\models\gemma-3.gguf", "gemma-3"),
            ("C:/models/gemma-3.gguf", "gemma-3"),
            ("meta-llama/Llama-3.3-70B", "meta-llama/Llama-3.3-70B"),
            ("qwen3:8b", "qwen3:8b"),
            ("/", "/"),
        ] {
            assert_eq!(without_directory(reported.to_owned()), name);
        }
    }
}
