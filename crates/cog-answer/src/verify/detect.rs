//! Detects the kind of a document.

use cog_json::{Node, Value};

use super::{Kind, read::Document};

/// A chunk has at least one of these keys.
const CHUNK_KEYS: [&str; 4] = ["chunk", "final", "progress", "streaming"];

/// A media item has `type` and at least one of these keys.
const MEDIA_KEYS: [&str; 4] = ["url", "data", "path", "upload_id"];

/// Returns the kind of a document: the first one whose keys it has.
pub(super) fn kind(document: &Document, has_module: bool) -> Option<Kind> {
    let node = match document {
        Document::Lines(lines) if lines.iter().all(|line| line.get("role").is_some()) => {
            return Some(Kind::Messages);
        }
        Document::Lines(_) => return Some(Kind::Stream),
        Document::One(value) => Value::node(value),
    };
    let has = |key: &str| node.get(key).is_some();
    let messages = node.get("messages").unwrap_or(node);
    if is_list_of(messages, |item| item.get("role").is_some()) {
        Some(Kind::Messages)
    } else if has("protocol") {
        Some(Kind::Handoff)
    } else if is_list_of(node, |item| is_chunk(item) || item.is_object() && item.is_empty()) {
        Some(Kind::Stream)
    } else if is_chunk(node) {
        Some(Kind::Chunk)
    } else if node.get("ok").and_then(Node::as_bool).is_some() {
        Some(Kind::Envelope)
    } else if has("type") && MEDIA_KEYS.into_iter().any(has) {
        Some(Kind::Media)
    } else {
        has_module.then_some(Kind::Answer)
    }
}

fn is_chunk(node: Node<'_>) -> bool {
    CHUNK_KEYS.into_iter().any(|key| node.get(key).is_some())
}

fn is_list_of(node: Node<'_>, is_item: impl Fn(Node<'_>) -> bool) -> bool {
    !node.is_empty() && node.is_array() && node.elements().all(is_item)
}
