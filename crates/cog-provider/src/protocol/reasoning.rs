//! The reasoning of a reply, in the form in which the next request sends it back.

use cog_json::{Node, Value};
use serde_json::{Map, Value as Json, json};

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
