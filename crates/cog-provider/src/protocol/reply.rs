//! What the decoders have in common: the order of the events of one reply.

use std::ops::Range;

use cog_json::Node;
use cog_spec::{FinishReason, ModelEvent, ModelMedia, ToolCallDelta, Usage};

use super::{DecodeError, VendorError};

/// Puts the events of one reply in order: who answers, then content, then usage, then one `Finished`.
///
/// The reason to stop is held back until the reply ends, since vendors send more after it, and some
/// send it more than once.
#[derive(Default)]
pub(crate) struct Reply {
    started: bool,
    reason: Option<FinishReason>,
    refusal: String,
    usage: Option<Usage>,
    finished: bool,
    /// Calls that came whole, without an index.
    calls: u32,
    frame: Brought,
}

/// What a frame brought so far.
#[derive(Default)]
enum Brought {
    #[default]
    Nothing,
    /// A piece of the answer that stands in the frame as it is, at this place.
    Text(Range<usize>),
    /// Anything else.
    More,
}

impl Reply {
    /// Another frame is read.
    pub(crate) fn begin_frame(&mut self) {
        self.frame = Brought::Nothing;
    }

    /// The place of the text of a frame that brought nothing else, and changed nothing.
    pub(crate) fn only_text(&self) -> Option<Range<usize>> {
        match &self.frame {
            Brought::Text(place) => Some(place.clone()),
            Brought::Nothing | Brought::More => None,
        }
    }

    /// Who answers: told once, by the first piece that says so.
    pub(crate) fn start(&mut self, node: Node<'_>, keys: StartKeys, out: &mut Vec<ModelEvent>) {
        let text = |key: &str| {
            let text = node.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        if self.started {
            return;
        }
        self.frame = Brought::More;
        let (model, id, fingerprint) = (text(keys.model), text(keys.id), text("system_fingerprint"));
        self.started = model.is_some() || id.is_some();
        if self.started {
            out.push(ModelEvent::Started { model, id, fingerprint });
        }
    }

    /// A piece of the answer.
    pub(crate) fn text(&mut self, node: Option<Node<'_>>, out: &mut Vec<ModelEvent>) {
        let Some(text) = node.and_then(Node::as_str).filter(|text| !text.is_empty()) else { return };
        let place = node.and_then(Node::literal_range);
        self.frame = match (&self.frame, place) {
            (Brought::Nothing, Some(place)) => Brought::Text(place),
            _ => Brought::More,
        };
        self.push_text(text, out);
    }

    /// The same, of a frame that brings nothing else. Pieces that come with one read become one event.
    pub(crate) fn push_text(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        match out.last_mut() {
            Some(ModelEvent::Text(before)) => before.push_str(text),
            _ => out.push(ModelEvent::Text(text.to_owned())),
        }
    }

    /// A piece of the reasoning.
    pub(crate) fn reasoning(&mut self, text: Option<&str>, out: &mut Vec<ModelEvent>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.frame = Brought::More;
        match out.last_mut() {
            Some(ModelEvent::Reasoning(before)) => before.push_str(text),
            _ => out.push(ModelEvent::Reasoning(text.to_owned())),
        }
    }

    /// A media item, complete.
    pub(crate) fn media(&mut self, media: ModelMedia, out: &mut Vec<ModelEvent>) {
        self.frame = Brought::More;
        out.push(ModelEvent::Media(media));
    }

    /// The index of a tool call that comes whole, where the vendor gives none.
    pub(crate) fn next_call(&mut self) -> u32 {
        self.frame = Brought::More;
        self.calls += 1;
        self.calls - 1
    }

    /// A piece of a tool call.
    pub(crate) fn tool_call(&mut self, call: ToolCallDelta, out: &mut Vec<ModelEvent>) {
        self.frame = Brought::More;
        out.push(ModelEvent::ToolCall(call));
    }

    /// A piece of the words with which the model refuses.
    pub(crate) fn refusal(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.frame = Brought::More;
            self.refusal.push_str(text);
        }
    }

    /// Tokens so far.
    pub(crate) fn usage(&mut self, usage: Option<Usage>, out: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        self.frame = Brought::More;
        if self.usage.replace(usage) != Some(usage) {
            out.push(ModelEvent::Usage(usage));
        }
    }

    /// Tokens so far, as they were told last.
    pub(crate) fn usage_so_far(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    /// Why the model stopped; the last word counts, but `Stop` does not undo a graver one.
    pub(crate) fn stop(&mut self, reason: FinishReason) {
        self.frame = Brought::More;
        if reason != FinishReason::Stop || self.reason.is_none() {
            self.reason = Some(reason);
        }
    }

    /// The reply ended as the protocol says it ends.
    pub(crate) fn end(&mut self, out: &mut Vec<ModelEvent>) {
        self.frame = Brought::More;
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        let reason = self.reason.take().unwrap_or(FinishReason::Stop);
        let reason = match reason {
            FinishReason::Stop | FinishReason::Refusal(None) if !self.refusal.is_empty() => {
                FinishReason::Refusal(Some(std::mem::take(&mut self.refusal)))
            }
            reason => reason,
        };
        out.push(ModelEvent::Finished(reason));
    }

    /// The connection ended. Without a reason to stop, the reply was cut.
    pub(crate) fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        if !self.finished && self.reason.is_none() {
            return Err(DecodeError::Cut);
        }
        self.end(out);
        Ok(())
    }
}

/// Where a vendor says who answers.
#[derive(Clone, Copy)]
pub(crate) struct StartKeys {
    pub(crate) model: &'static str,
    pub(crate) id: &'static str,
}

/// The fault that a body tells of, in any of the shapes vendors have for it: `{error: {message, code |
/// type | status}}`, `{error: text}`, `{message}`, `{detail}`, an array of one of these.
pub(crate) fn fault_in(body: Node<'_>) -> Option<VendorError> {
    let body = if body.is_array() { body.at(0)? } else { body };
    let told =
        ["error", "errors", "detail"].iter().find_map(|key| body.get(key).filter(|error| !error.is_null()));
    let error = told.unwrap_or(body);
    let error = if error.is_array() { error.at(0)? } else { error };
    if let Some(message) = error.as_str() {
        return Some(VendorError { code: None, message: message.to_owned() });
    }
    let message = ["message", "msg", "detail", "error"].iter().find_map(|key| error.get(key)?.as_str());
    let code = ["code", "type", "status"].iter().find_map(|key| error.get(key).and_then(word));
    Some(VendorError { code, message: message?.to_owned() })
}

fn word(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned).or_else(|| node.as_i64().map(|number| number.to_string()))
}
