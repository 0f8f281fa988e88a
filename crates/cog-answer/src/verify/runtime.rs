//! The runtime's own keys of meta, each with its shape (rulings R26, R27).

use cog_json::Node;
use cog_schema::Violation;

use super::fields::{
    self, Field, due, is_anything, is_count, is_list, is_object, is_text, is_word, may, mistyped,
};
use crate::error::violation;

const META: [Field; 11] = [
    may("model", "a name such as `openai/gpt-4.1`", is_word),
    may("processing_time_ms", "an integer of milliseconds", is_count),
    may("latency_ms", "an integer of milliseconds", is_count),
    may("usage", "an object", is_object),
    may("attempts", "an integer from 1", |node| node.as_u64().is_some_and(|count| count >= 1)),
    may("repairs", "an array", is_list),
    may("fallbacks", "an array", is_list),
    may("trace_id", "a non-empty string", is_word),
    may("media_processed", "an array", is_list),
    may("media_validation", "an array or an object", |node| node.is_array() || node.is_object()),
    may("cost", "an object", is_object),
];

const USAGE: [Field; 5] = [
    due("input_tokens", "an integer", is_count),
    due("output_tokens", "an integer", is_count),
    due("total_tokens", "an integer", is_count),
    may("cached_input_tokens", "an integer", is_count),
    may("reasoning_tokens", "an integer", is_count),
];

/// A repair under `meta` tells values, any other sizes.
const REPAIR_OF_META: [Field; 4] = [
    due("rule", "a name such as `trim_explain`", is_word),
    due("path", "a string", is_text),
    may("before", "a value", is_anything),
    may("after", "a value", is_anything),
];

const FALLBACK: [Field; 3] = [
    due("provider", "a name such as `openai`", is_word),
    due("code", "a code such as `E4001`", is_word),
    due("message", "a string", is_text),
];

const REPAIR: [Field; 4] = [
    due("rule", "a name such as `trailing_comma`", is_word),
    due("path", "a string", is_text),
    may("before", "an integer of bytes", is_count),
    may("after", "an integer of bytes", is_count),
];

/// Checks what the runtime adds to a meta that stands at `path`.
pub(super) fn check(meta: Node<'_>, path: &str, found: &mut Vec<Violation>) {
    if !meta.is_object() {
        return;
    }
    fields::check(meta, path, &META, found);
    if let Some(usage) = meta.get("usage").filter(|usage| usage.is_object()) {
        check_usage(usage, &fields::below(path, "usage"), found);
    }
    for (at, repair) in elements(meta, path, "repairs") {
        let is_of_meta = repair.get("path").and_then(Node::as_str).is_some_and(is_below_meta);
        fields::check(repair, &at, if is_of_meta { &REPAIR_OF_META } else { &REPAIR }, found);
    }
    for (at, fallback) in elements(meta, path, "fallbacks") {
        fields::check(fallback, &at, &FALLBACK, found);
    }
    let media = elements(meta, path, "media_processed").filter(|(_, medium)| !medium.is_object());
    found.extend(media.map(|(at, medium)| mistyped(medium, &at, "an object")));
}

/// Checks the tokens of a run, whose total is the sum of both (SPEC 3.2.2).
pub(super) fn check_usage(usage: Node<'_>, path: &str, found: &mut Vec<Violation>) {
    fields::check(usage, path, &USAGE, found);
    let count = |key: &str| usage.get(key).and_then(Node::as_u64);
    if let (Some(input), Some(output), Some(total)) =
        (count("input_tokens"), count("output_tokens"), count("total_tokens"))
        && input.checked_add(output) != Some(total)
    {
        let message =
            format!("found {total}; the sum of input and output is {}", input.saturating_add(output));
        found.push(violation(&fields::below(path, "total_tokens"), "sum", message));
    }
}

/// The elements of a list in an object, each with its path.
fn elements<'a>(object: Node<'a>, path: &str, key: &str) -> impl Iterator<Item = (String, Node<'a>)> {
    let path = fields::below(path, key);
    let list = object.get(key).into_iter().flat_map(Node::elements);
    list.enumerate().map(move |(index, element)| (format!("{path}[{index}]"), element))
}

fn is_below_meta(path: &str) -> bool {
    path.strip_prefix("meta").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
