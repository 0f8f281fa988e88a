//! Rules between the members that the runtime writes.

use cog_json::Node;
use cog_schema::Violation;

use super::violations::{below, mistyped};
use crate::error::violation;

/// Checks the members of a meta at `path`: the sum of the usage, and the sizes of repairs outside `meta` (ruling R26).
pub(super) fn check_meta(meta: Node<'_>, path: &str, found: &mut Vec<Violation>) {
    if let Some(usage) = meta.get("usage") {
        check_usage(usage, &below(path, "usage"), found);
    }
    let repairs = meta.get("repairs").into_iter().flat_map(Node::elements);
    for (index, repair) in repairs.enumerate().filter(|(_, repair)| is_outside_meta(*repair)) {
        for key in ["before", "after"] {
            if let Some(size) = repair.get(key).filter(|size| size.as_u64().is_none()) {
                found.push(mistyped(size, &format!("{path}.repairs[{index}].{key}"), "an integer of bytes"));
            }
        }
    }
}

/// Checks that the total of a usage is the sum of input and output (SPEC 3.2.2).
pub(super) fn check_usage(usage: Node<'_>, path: &str, found: &mut Vec<Violation>) {
    let count = |key: &str| usage.get(key).and_then(Node::as_u64);
    if let (Some(input), Some(output), Some(total)) =
        (count("input_tokens"), count("output_tokens"), count("total_tokens"))
        && input.checked_add(output) != Some(total)
    {
        let message =
            format!("found {total}; the sum of input and output is {}", input.saturating_add(output));
        found.push(violation(&below(path, "total_tokens"), "sum", message));
    }
}

fn is_outside_meta(repair: Node<'_>) -> bool {
    let path = repair.get("path").and_then(Node::as_str).unwrap_or_default();
    !path.strip_prefix("meta").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
