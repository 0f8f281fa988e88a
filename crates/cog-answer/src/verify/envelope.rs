use cog_json::Node;
use cog_schema::Violation;

use super::{
    fields::{self, Field, absent, is_object, is_object_or_null, is_text, mistyped},
    module::Standard,
};
use crate::error::violation;

/// What every warning has (docs/spec/streaming.md).
const WARNING: [Field; 3] = [
    fields::due("code", "a code such as `W2001`", is_text),
    fields::due("message", "a string", is_text),
    fields::may("fallback_used", "a string", is_text),
];

/// The keys of an envelope. What starts with `_` stands beside it.
const KEYS: [&str; 5] = ["ok", "meta", "data", "error", "partial_data"];

/// Checks an envelope (SPEC 3.1). A null arm counts as absent: it is how models are asked to write it.
pub(super) fn check(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    if !envelope.is_object() {
        return found.push(mistyped(envelope, "", "an object `{ok, meta, data}` or `{ok, meta, error}`"));
    }
    match envelope.get("meta") {
        Some(meta) => standard.check_meta(meta, found),
        None => found.push(absent("meta", "meta")),
    }
    match envelope.get("ok").map(|ok| (ok, ok.as_bool())) {
        Some((_, Some(true))) => check_success(standard, envelope, found),
        Some((_, Some(false))) => check_failure(standard, envelope, found),
        Some((ok, None)) => found.push(mistyped(ok, "ok", "true or false")),
        None => found.push(absent("ok", "ok")),
    }
    check_warnings(envelope, found);
    let is_strange = |key: &str| !KEYS.contains(&key) && !key.starts_with('_');
    found.extend(envelope.members().filter(|(key, _)| is_strange(key)).map(|(key, _)| {
        violation(key, "additionalProperties", "unknown key of an envelope; put business fields in `data`")
    }));
}

/// `_warnings`, which an envelope and the last chunk of a stream may carry.
pub(super) fn check_warnings(carrier: Node<'_>, found: &mut Vec<Violation>) {
    let Some(warnings) = carrier.get("_warnings") else { return };
    if !warnings.is_array() {
        return found.push(mistyped(warnings, "_warnings", "an array"));
    }
    for (index, warning) in warnings.elements().enumerate() {
        fields::check(warning, &format!("_warnings[{index}]"), &WARNING, found);
    }
}

fn check_success(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    refuse(envelope, &["error", "partial_data"], "`ok` is true", found);
    match envelope.get("data") {
        Some(data) if data.is_object() => {
            let meta = envelope.get("meta").unwrap_or(data);
            standard.check_success(meta, data, found);
        }
        Some(data) => found.push(mistyped(data, "data", "an object")),
        None => found.push(absent("data", "data")),
    }
}

fn check_failure(standard: &Standard<'_>, envelope: Node<'_>, found: &mut Vec<Violation>) {
    refuse(envelope, &["data"], "`ok` is false", found);
    match envelope.get("error") {
        Some(error) if is_object(error) => standard.check_error(error, found),
        Some(error) => found.push(mistyped(error, "error", "an object")),
        None => found.push(absent("error", "error")),
    }
    if let Some(partial) = envelope.get("partial_data").filter(|partial| !is_object_or_null(*partial)) {
        found.push(mistyped(partial, "partial_data", "an object"));
    }
}

fn refuse(envelope: Node<'_>, keys: &[&str], why: &str, found: &mut Vec<Violation>) {
    for key in keys {
        if envelope.get(key).is_some_and(|arm| !arm.is_null()) {
            found.push(violation(key, "envelope", format!("{why}, so `{key}` is not allowed")));
        }
    }
}
