//! The members of an object, checked against a table.

use cog_json::{Kind, Node};
use cog_schema::Violation;

use crate::error::{named, violation};

/// A member that the specification describes.
pub(super) struct Field {
    key: &'static str,
    is_due: bool,
    /// What may stand there, as a message says it.
    allowed: &'static str,
    fits: fn(Node<'_>) -> bool,
}

/// A member that must be there.
pub(super) const fn due(key: &'static str, allowed: &'static str, fits: fn(Node<'_>) -> bool) -> Field {
    Field { key, is_due: true, allowed, fits }
}

/// A member that may be there.
pub(super) const fn may(key: &'static str, allowed: &'static str, fits: fn(Node<'_>) -> bool) -> Field {
    Field { key, is_due: false, allowed, fits }
}

/// Checks an object at `path`, the empty text for the document itself. Members that the table does not name pass.
pub(super) fn check(object: Node<'_>, path: &str, fields: &[Field], found: &mut Vec<Violation>) {
    if !object.is_object() {
        return found.push(mistyped(object, path, "an object"));
    }
    for field in fields {
        let path = below(path, field.key);
        match object.get(field.key) {
            Some(node) if (field.fits)(node) => {}
            Some(node) => found.push(mistyped(node, &path, field.allowed)),
            None if field.is_due => found.push(absent(&path, field.key)),
            None => {}
        }
    }
}

/// A member that is required but missing.
pub(super) fn absent(path: &str, key: &str) -> Violation {
    violation(path, "required", format!("`{key}` is required but missing"))
}

/// A value that is not what may stand there.
pub(super) fn mistyped(node: Node<'_>, path: &str, allowed: &str) -> Violation {
    let found = match node.kind() {
        Kind::Null | Kind::Bool | Kind::Number => node.to_string(),
        Kind::String if node.as_str() == Some("") => "an empty string".to_owned(),
        kind => named(kind).to_owned(),
    };
    violation(path, "type", format!("found {found}; allowed: {allowed}"))
}

/// The path of a member.
pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

pub(super) fn is_text(node: Node<'_>) -> bool {
    node.is_string()
}

pub(super) fn is_word(node: Node<'_>) -> bool {
    node.as_str().is_some_and(|text| !text.is_empty())
}

pub(super) fn is_count(node: Node<'_>) -> bool {
    node.as_u64().is_some()
}

pub(super) fn is_true(node: Node<'_>) -> bool {
    node.as_bool() == Some(true)
}

pub(super) fn is_false(node: Node<'_>) -> bool {
    node.as_bool() == Some(false)
}

pub(super) fn is_object(node: Node<'_>) -> bool {
    node.is_object()
}

pub(super) fn is_list(node: Node<'_>) -> bool {
    node.is_array()
}

pub(super) fn is_object_or_null(node: Node<'_>) -> bool {
    node.is_object() || node.is_null()
}

pub(super) fn is_anything(_: Node<'_>) -> bool {
    true
}
