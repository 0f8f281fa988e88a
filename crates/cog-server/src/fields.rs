use cog_json::Node;
use cog_spec::{Code, ErrorBody};

/// Checks that an object has no other keys than these. `prefix` is the path before the keys.
///
/// # Errors
/// E1001, with the first unknown key.
pub(crate) fn allow_only(node: Node<'_>, prefix: &str, keys: &[&str]) -> Result<(), ErrorBody> {
    let Some((unknown, _)) = node.members().find(|(key, _)| !keys.contains(key)) else { return Ok(()) };
    let shown: String = unknown.chars().take(60).collect();
    let message = format!("{prefix}{shown}: unknown key; allowed: {}", keys.join(", "));
    Err(ErrorBody::new(Code::InvalidInput, message))
}
