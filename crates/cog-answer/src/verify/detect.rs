//! What a document is meant to be.

use cog_json::{Node, Value};

use super::{Kind, read::Document};

/// Keys of which a chunk has at least one.
const OF_CHUNKS: [&str; 4] = ["chunk", "final", "progress", "streaming"];

/// Keys of which a medium has at least one beside `type`.
const OF_MEDIA: [&str; 4] = ["url", "data", "path", "upload_id"];

/// The kind of a document, by the first of these that fits; none if nothing does.
pub(super) fn kind(document: &Document, has_module: bool) -> Option<Kind> {
    let node = match document {
        Document::Lines(_) => return Some(Kind::Stream),
        Document::One(value) => Value::node(value),
    };
    let has = |key: &str| node.get(key).is_some();
    if is_list_of(node, |item| item.get("role").is_some()) {
        Some(Kind::Messages)
    } else if has("protocol") {
        Some(Kind::Handoff)
    } else if is_list_of(node, |item| is_chunk(item) || item.is_object() && item.is_empty()) {
        Some(Kind::Stream)
    } else if is_chunk(node) {
        Some(Kind::Chunk)
    } else if node.get("ok").and_then(Node::as_bool).is_some() {
        Some(Kind::Envelope)
    } else if has("type") && OF_MEDIA.into_iter().any(has) {
        Some(Kind::Media)
    } else {
        has_module.then_some(Kind::Answer)
    }
}

fn is_chunk(node: Node<'_>) -> bool {
    OF_CHUNKS.into_iter().any(|key| node.get(key).is_some())
}

fn is_list_of(node: Node<'_>, is_item: impl Fn(Node<'_>) -> bool) -> bool {
    !node.is_empty() && node.is_array() && node.elements().all(is_item)
}
