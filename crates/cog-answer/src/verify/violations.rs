//! Violations that no schema reports.

use cog_json::{Kind, Node};
use cog_schema::Violation;

use crate::error::{named, violation};

/// Returns the violation for a required member that is missing.
pub(super) fn absent(path: &str, key: &str) -> Violation {
    violation(path, "required", format!("`{key}` is required but missing"))
}

/// Returns the violation for a value of another form.
pub(super) fn mistyped(node: Node<'_>, path: &str, allowed: &str) -> Violation {
    let found = match node.kind() {
        Kind::Null | Kind::Bool | Kind::Number => node.to_string(),
        Kind::String if node.as_str() == Some("") => "an empty string".to_owned(),
        kind => named(kind).to_owned(),
    };
    violation(path, "type", format!("found {found}; allowed: {allowed}"))
}

/// Returns the path of a member; the empty path is the document.
pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
