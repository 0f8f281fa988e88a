//! The fields of a message that several checks read.

use cog_json::Node;

use crate::problem::Path;

/// Calls `visit` with each text of a message: its content, or the texts of its parts.
pub(super) fn each_text(message: Node<'_>, path: &Path<'_>, visit: &mut dyn FnMut(&str, &Path<'_>)) {
    let Some(content) = message.get("content") else { return };
    let path = path.key("content");
    if let Some(text) = content.as_str() {
        visit(text, &path);
    }
    for (index, part) in content.elements().enumerate() {
        for key in ["text", "refusal"] {
            if let Some(text) = part.get(key).and_then(Node::as_str) {
                visit(text, &path.index(index).key(key));
            }
        }
    }
}

/// Returns the role of a message.
pub(super) fn role(message: Node<'_>) -> &str {
    message.get("role").and_then(Node::as_str).unwrap_or_default()
}

/// Returns the tool calls of a message.
pub(super) fn calls(message: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    message.get("tool_calls").into_iter().flat_map(Node::elements)
}
