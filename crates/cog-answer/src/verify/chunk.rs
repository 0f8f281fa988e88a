use cog_json::{Node, Path, Segment};
use cog_schema::Violation;

use super::{
    Form, absent,
    envelope::{self, DECIDED},
    mistyped,
    module::Standard,
};

/// The kind of a chunk, by the key that only this kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Meta,
    Numbered,
    Progress,
    Final,
    Error,
}

impl Part {
    /// Returns the kind of a chunk; none if it is not an object, or not a chunk.
    pub(super) fn from_chunk(chunk: Node<'_>) -> Option<Self> {
        if chunk.get("chunk").is_some() {
            Some(Self::Numbered)
        } else if chunk.get("progress").is_some() {
            Some(Self::Progress)
        } else if chunk.get("final").is_some() {
            Some(Self::Final)
        } else if chunk.get("error").is_some()
            || chunk.get("ok").is_some_and(|ok| ok.as_bool() == Some(false))
        {
            Some(Self::Error)
        } else {
            chunk.get("streaming").map(|_| Self::Meta)
        }
    }

    /// Returns whether it is the last chunk of a stream.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }
}

/// Checks one chunk (SPEC 3.2.1, 3.2.2; rulings R41–R44).
pub(super) fn check(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    match Part::from_chunk(chunk) {
        Some(Part::Meta) => check_meta(chunk, found),
        Some(Part::Numbered) => check_numbered(chunk, found),
        Some(Part::Progress) => Form::ProgressChunk.check(chunk, "", &[], found),
        Some(Part::Final) => check_final(standard, chunk, found),
        Some(Part::Error) => check_error(standard, chunk, found),
        None => found.push(mistyped(
            chunk,
            "",
            "an object with `chunk`, `progress`, `final`, `error` or `streaming`",
        )),
    }
}

/// Checks the first chunk. Its confidence may still be unknown (SPEC 6.3), and its risk may be the module's own.
fn check_meta(chunk: Node<'_>, found: &mut Vec<Violation>) {
    let risk = chunk.get("meta").and_then(|meta| meta.get("risk"));
    let decided: &[&str] =
        if risk.is_some_and(|risk| risk.is_string() || risk.is_object()) { &["meta.risk"] } else { &[] };
    Form::FirstChunk.check(chunk, "", decided, found);
    if let Some(meta) = chunk.get("meta") {
        envelope::check_meta(meta, "meta", found);
    }
}

fn check_numbered(chunk: Node<'_>, found: &mut Vec<Violation>) {
    let Some(inner) = chunk.get("chunk") else { return };
    let field = inner.get("field");
    let kind = inner.get("type");
    match kind.and_then(Node::as_str) {
        Some("delta") => Form::Delta.check(inner, "chunk", &[], found),
        Some("snapshot") => Form::Snapshot.check(inner, "chunk", &[], found),
        _ if !inner.is_object() => found.push(mistyped(inner, "chunk", "an object")),
        _ => found.push(match kind {
            Some(kind) => mistyped(kind, "chunk.type", "`delta` or `snapshot`"),
            None => absent("chunk.type", "type"),
        }),
    }
    if let Some(field) = field.filter(|field| field.is_string() && !is_field(*field)) {
        found.push(mistyped(field, "chunk.field", "a path such as `data.objects[0].label`"));
    }
    if let (Some("snapshot"), Some("meta"), Some(meta)) =
        (kind.and_then(Node::as_str), field.and_then(Node::as_str), inner.get("data"))
    {
        const DECIDED: [&str; 3] = ["chunk.data.confidence", "chunk.data.risk", "chunk.data.explain"];
        Form::Meta.check(meta, "chunk.data", &DECIDED, found);
        envelope::check_meta(meta, "chunk.data", found);
    }
}

fn check_final(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    let object = |key: &str| chunk.get(key).filter(|node| node.is_object());
    if let Some(meta) = object("meta") {
        standard.check_meta(meta, found);
    }
    if let (Some(meta), Some(data)) = (object("meta"), object("data")) {
        standard.check_success(meta, data, found);
    }
    if let Some(usage) = object("usage") {
        envelope::check_usage(usage, "usage", found);
    }
    Form::FinalChunk.check(chunk, "", &DECIDED, found);
}

fn check_error(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    if let Some(error) = chunk.get("error").filter(|error| error.is_object()) {
        standard.check_error(error, found);
    }
    Form::ErrorChunk.check(chunk, "", &DECIDED, found);
}

/// Returns whether a path is in `data`, or `meta` itself (rulings R42, R44).
fn is_field(node: Node<'_>) -> bool {
    let path = node.as_str().and_then(|text| text.parse::<Path>().ok());
    path.is_some_and(|path| matches!(path.first(), Some(Segment::Key("data" | "meta"))))
}
