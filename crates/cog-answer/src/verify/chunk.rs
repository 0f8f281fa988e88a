use cog_json::{Node, Path, Segment};
use cog_schema::Violation;

use super::{
    envelope,
    fields::{
        self, Field, absent, due, is_anything, is_count, is_false, is_object, is_object_or_null, is_text,
        is_true, is_word, may, mistyped,
    },
    module::Standard,
    runtime,
};

const META: [Field; 6] = [
    due("ok", "true", is_true),
    due("streaming", "true", is_true),
    due("session_id", "a string", is_word),
    due("meta", "an object", is_object),
    may("resumed", "true", is_true),
    may("resume_from_seq", "an integer", is_count),
];

const DELTA: [Field; 4] = [
    due("seq", "an integer from 1", is_seq),
    due("field", "a path such as `data.objects[0].label`", is_field),
    due("delta", "a string", is_text),
    may("checkpoint", "an object", is_object),
];

const SNAPSHOT: [Field; 3] = [
    due("seq", "an integer from 1", is_seq),
    may("field", "a path such as `data.objects[0].label`", is_field),
    due("data", "a value", is_anything),
];

const CHECKPOINT: [Field; 2] =
    [due("offset", "an integer of bytes", is_count), due("hash", "six hexadecimal digits", is_short_hash)];

const PROGRESS: [Field; 4] = [
    due("percent", "a number from 0 to 100", is_percent),
    may("stage", "a string", is_text),
    may("message", "a string", is_text),
    may("violation", "an object", is_object),
];

const NOTE: [Field; 3] =
    [due("path", "a string", is_text), due("rule", "a string", is_text), due("message", "a string", is_text)];

const FINAL: [Field; 4] = [
    due("final", "true", is_true),
    due("meta", "an object", is_object),
    due("data", "an object", is_object),
    may("usage", "an object", is_object),
];

const ERROR: [Field; 5] = [
    due("ok", "false", is_false),
    due("streaming", "true", is_true),
    due("session_id", "a string", is_word),
    due("error", "an object", is_object),
    may("partial_data", "an object", is_object_or_null),
];

const RECOVERY: [Field; 4] = [
    due("last_seq", "an integer", is_count),
    may("last_checkpoint", "an object", is_object),
    may("retry_after_ms", "an integer", is_count),
    may("max_retries", "an integer", is_count),
];

/// What a chunk is meant to be, by the key that only it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Meta,
    Numbered,
    Progress,
    Final,
    Error,
}

impl Part {
    /// The part of a chunk; none if it is no object, or nothing that a stream holds.
    pub(super) fn from_chunk(chunk: Node<'_>) -> Option<Self> {
        if chunk.get("chunk").is_some() {
            Some(Self::Numbered)
        } else if chunk.get("progress").is_some() {
            Some(Self::Progress)
        } else if chunk.get("final").is_some() {
            Some(Self::Final)
        } else if chunk.get("error").is_some() || chunk.get("ok").is_some_and(is_false) {
            Some(Self::Error)
        } else {
            chunk.get("streaming").map(|_| Self::Meta)
        }
    }

    /// Whether nothing follows it.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }
}

/// Checks one chunk (SPEC 3.2.1, 3.2.2; rulings R41–R44).
pub(super) fn check(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    match Part::from_chunk(chunk) {
        Some(Part::Meta) => check_meta(chunk, found),
        Some(Part::Numbered) => check_numbered(chunk, found),
        Some(Part::Progress) => check_inner(chunk, "progress", &PROGRESS, &[("violation", &NOTE)], found),
        Some(Part::Final) => check_final(standard, chunk, found),
        Some(Part::Error) => check_error(standard, chunk, found),
        None => found.push(mistyped(
            chunk,
            "",
            "an object with `chunk`, `progress`, `final`, `error` or `streaming`",
        )),
    }
}

/// The first chunk: its confidence may still be unknown (SPEC 6.3).
fn check_meta(chunk: Node<'_>, found: &mut Vec<Violation>) {
    const FIRST: [Field; 3] = [
        due("confidence", "a number from 0 to 1, or null", is_confidence_or_null),
        due("risk", "a string or an object", |node| node.is_string() || node.is_object()),
        due("explain", "a string of at most 280 characters", is_explain),
    ];
    fields::check(chunk, "", &META, found);
    if let Some(meta) = chunk.get("meta").filter(|meta| meta.is_object()) {
        fields::check(meta, "meta", &FIRST, found);
        runtime::check(meta, "meta", found);
    }
}

fn check_numbered(chunk: Node<'_>, found: &mut Vec<Violation>) {
    let Some(inner) = chunk.get("chunk") else { return };
    let kind = inner.get("type");
    match kind.and_then(Node::as_str) {
        Some("delta") => check_inner(chunk, "chunk", &DELTA, &[("checkpoint", &CHECKPOINT)], found),
        Some("snapshot") => {
            check_inner(chunk, "chunk", &SNAPSHOT, &[], found);
            let is_meta = inner.get("field").and_then(Node::as_str) == Some("meta");
            if let Some(meta) = inner.get("data").filter(|_| is_meta) {
                runtime::check(meta, "chunk.data", found);
            }
        }
        _ if !inner.is_object() => found.push(mistyped(inner, "chunk", "an object")),
        _ => found.push(match kind {
            Some(kind) => mistyped(kind, "chunk.type", "`delta` or `snapshot`"),
            None => absent("chunk.type", "type"),
        }),
    }
}

fn check_final(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    fields::check(chunk, "", &FINAL, found);
    let object = |key: &str| chunk.get(key).filter(|node| node.is_object());
    if let Some(meta) = object("meta") {
        standard.check_meta(meta, found);
    }
    if let (Some(meta), Some(data)) = (object("meta"), object("data")) {
        standard.check_success(meta, data, found);
    }
    if let Some(usage) = object("usage") {
        runtime::check_usage(usage, "usage", found);
    }
    envelope::check_warnings(chunk, found);
}

fn check_error(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    fields::check(chunk, "", &ERROR, found);
    let Some(error) = chunk.get("error").filter(|error| error.is_object()) else { return };
    standard.check_error(error, found);
    if let Some(recovery) = error.get("recovery") {
        fields::check(recovery, "error.recovery", &RECOVERY, found);
    }
    envelope::check_warnings(chunk, found);
}

/// Checks the object that a chunk is about, and those of its members that are objects themselves.
fn check_inner(
    chunk: Node<'_>,
    key: &str,
    table: &[Field],
    inner: &[(&str, &[Field])],
    found: &mut Vec<Violation>,
) {
    let Some(object) = chunk.get(key) else { return };
    fields::check(object, key, table, found);
    for (name, table) in inner {
        if let Some(node) = object.get(name).filter(|node| node.is_object()) {
            fields::check(node, &fields::below(key, name), table, found);
        }
    }
}

fn is_seq(node: Node<'_>) -> bool {
    node.as_u64().is_some_and(|seq| seq >= 1)
}

/// Supplement R42, R44: a place in `data`, or `meta` itself.
fn is_field(node: Node<'_>) -> bool {
    let path = node.as_str().and_then(|text| text.parse::<Path>().ok());
    path.is_some_and(|path| matches!(path.first(), Some(Segment::Key("data" | "meta"))))
}

fn is_short_hash(node: Node<'_>) -> bool {
    node.as_str().is_some_and(|hash| hash.len() == 6 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn is_percent(node: Node<'_>) -> bool {
    node.as_f64().is_some_and(|percent| (0.0..=100.0).contains(&percent))
}

fn is_confidence_or_null(node: Node<'_>) -> bool {
    node.is_null() || node.as_f64().is_some_and(|confidence| (0.0..=1.0).contains(&confidence))
}

fn is_explain(node: Node<'_>) -> bool {
    node.as_str().is_some_and(|text| text.chars().count() <= cog_spec::Meta::MAX_EXPLAIN)
}
