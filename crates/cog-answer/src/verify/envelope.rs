use cog_json::Node;
use cog_schema::Violation;

use super::{Form, absent, below, mistyped, module::Standard};
use crate::error::violation;

/// The keys of an envelope. Keys that start with `_` are also allowed.
const KEYS: [&str; 5] = ["ok", "meta", "data", "error", "partial_data"];

/// The keys that other runtimes add, which readers ignore (ruling R77).
pub(super) const IGNORED: [&str; 3] = ["version", "module", "provider"];

/// The paths that the contract of the module decides, or without a module the specification's own contract.
pub(super) const DECIDED: [&str; 5] =
    ["meta.confidence", "meta.risk", "meta.explain", "error.code", "error.details.origin"];

/// Checks an envelope (SPEC 3.1). A null arm counts as absent, because the prompt requests it.
pub(super) fn check(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    if !envelope.is_object() {
        return found.push(mistyped(envelope, "", "an object `{ok, meta, data}` or `{ok, meta, error}`"));
    }
    match envelope.get("meta") {
        Some(meta) => {
            let has_failed = envelope.get("ok").and_then(Node::as_bool) == Some(false);
            standard.check_meta(meta, envelope.get("error").filter(|_| has_failed), found);
        }
        None => found.push(absent("meta", "meta")),
    }
    match envelope.get("ok").map(|ok| (ok, ok.as_bool())) {
        Some((_, Some(true))) => check_success(standard, envelope, found),
        Some((_, Some(false))) => check_failure(standard, envelope, found),
        Some((ok, None)) => found.push(mistyped(ok, "ok", "true or false")),
        None => found.push(absent("ok", "ok")),
    }
    let unknown = envelope
        .members()
        .filter(|(key, _)| !KEYS.contains(key) && !IGNORED.contains(key) && !key.starts_with('_'));
    found.extend(unknown.map(|(key, _)| {
        violation(key, "additionalProperties", "unknown key of an envelope; put business fields in `data`")
    }));
}

fn check_success(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    refuse(envelope, &["error", "partial_data"], "`ok` is true", found);
    if let Some(data) = envelope.get("data").filter(|data| data.is_object()) {
        standard.check_success(envelope.get("meta").unwrap_or(data), data, found);
        standard.check_rationale(data, found);
    }
    Form::Success.check(envelope, "", &DECIDED, found);
}

fn check_failure(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    refuse(envelope, &["data"], "`ok` is false", found);
    if let Some(error) = envelope.get("error").filter(|error| error.is_object()) {
        standard.check_error(error, found);
    }
    Form::Failure.check(envelope, "", &DECIDED, found);
}

fn refuse(envelope: Node<'_>, keys: &[&str], why: &str, found: &mut Vec<Violation>) {
    for key in keys {
        if envelope.get(key).is_some_and(|arm| !arm.is_null()) {
            found.push(violation(key, "envelope", format!("{why}, so `{key}` is not allowed")));
        }
    }
}

// Rules between the members that the runtime writes.

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
    if let Some(input) = usage.get("input_tokens").and_then(Node::as_u64)
        && let Some(output) = usage.get("output_tokens").and_then(Node::as_u64)
        && let Some(total) = usage.get("total_tokens").and_then(Node::as_u64)
        && input.checked_add(output) != Some(total)
    {
        let message =
            format!("found {total}; the sum of input and output is {}", input.saturating_add(output));
        found.push(violation(&below(path, "total_tokens"), "sum", message));
    }
}

fn is_outside_meta(repair: Node<'_>) -> bool {
    let path = repair.get_str("path").unwrap_or_default();
    !path.strip_prefix("meta").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
