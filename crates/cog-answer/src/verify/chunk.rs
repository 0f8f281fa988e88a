use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use cog_json::{Node, Path, Segment, Value};
use cog_schema::Violation;
use cog_spec::Checkpoint;

use super::{
    BEYOND, Form, Item, beyond,
    envelope::{self, DECIDED, IGNORED},
    mistyped,
    module::Standard,
    read::{Document, Event},
    sorted, warn_of_unknown,
};
use crate::{emit::CheckpointHasher, error::violation, fold::DataAccumulator};

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

    /// Returns its name in the published schema.
    fn definition(self) -> &'static str {
        match self {
            Self::Meta => "metaChunk",
            Self::Numbered => "numberedChunk",
            Self::Progress => "progressChunk",
            Self::Final => "finalChunk",
            Self::Error => "errorChunk",
        }
    }

    /// Returns whether it is the last chunk of a stream.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }
}

/// Checks one chunk (SPEC 3.2.1, 3.2.2; rulings R41–R44).
pub(super) fn check(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    let part = Part::from_chunk(chunk);
    match part {
        Some(Part::Meta) => check_meta(chunk, found),
        Some(Part::Numbered) => {
            check_numbered(chunk, found);
            soften(found, &["chunk.type", "chunk.field"]);
        }
        Some(Part::Progress) => {
            Form::ProgressChunk.check(chunk, "", &[], found);
            chunk
                .get("progress")
                .into_iter()
                .for_each(|it| warn_of_unknown(it, "progress", "progress", found));
        }
        Some(Part::Final) => check_final(standard, chunk, found),
        Some(Part::Error) => {
            check_error(standard, chunk, found);
            soften(found, &["streaming", "session_id"]);
        }
        None => found.push(mistyped(
            chunk,
            "",
            "an object with `chunk`, `progress`, `final`, `error` or `streaming`",
        )),
    }
    if let Some(part) = part {
        warn_of_unknown(chunk, "", part.definition(), found);
        found.retain(|one| !(one.rule == BEYOND && IGNORED.contains(&one.path.as_str())));
    }
}

/// Turns missing members that only the rulings require into warnings: SPEC 3.2.1 lists the required fields of each chunk.
fn soften(found: &mut [Violation], paths: &[&str]) {
    for one in found.iter_mut().filter(|one| one.rule == "required" && paths.contains(&one.path.as_str())) {
        *one = beyond(&one.path, &one.message);
    }
}

/// Checks the first chunk. Its confidence may still be unknown (SPEC 6.3), and its risk may be the module's own.
fn check_meta(chunk: Node<'_>, found: &mut Vec<Violation>) {
    let risk = chunk.get("meta").and_then(|meta| meta.get("risk"));
    let decided: &[&str] =
        if risk.is_some_and(|risk| risk.is_string() || risk.is_object()) { &["meta.risk"] } else { &[] };
    Form::FirstChunk.check(chunk, "", decided, found);
    soften(found, &["ok"]);
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
        _ if inner.is_object() && inner.is_empty() => {
            found.push(beyond("chunk", "an empty chunk; a heartbeat is `{}`, an empty line or a comment"));
        }
        // What it contains shows its type.
        None if inner.get("delta").is_some() => Form::Delta.check(inner, "chunk", &[], found),
        None if inner.get("data").is_some() => Form::Snapshot.check(inner, "chunk", &[], found),
        _ if !inner.is_object() => found.push(mistyped(inner, "chunk", "an object")),
        _ => found.push(match kind {
            Some(kind) => mistyped(kind, "chunk.type", "`delta` or `snapshot`"),
            None => violation("chunk", "required", "`delta` or `data` is required but missing"),
        }),
    }
    let definition = if inner.get("delta").is_some() { "delta" } else { "snapshot" };
    warn_of_unknown(inner, "chunk", definition, found);
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
    if let Some(meta) = object(chunk, "meta") {
        standard.check_meta(meta, None, found);
        if let Some(data) = object(chunk, "data") {
            standard.check_success(meta, data, found);
        }
    }
    if let Some(usage) = object(chunk, "usage") {
        envelope::check_usage(usage, "usage", found);
    }
    Form::FinalChunk.check(chunk, "", &DECIDED, found);
}

fn object<'a>(chunk: Node<'a>, key: &str) -> Option<Node<'a>> {
    chunk.get(key).filter(|node| node.is_object())
}

fn check_error(standard: &Standard<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
    if let Some(error) = object(chunk, "error") {
        standard.check_error(error, found);
    }
    Form::ErrorChunk.check(chunk, "", &DECIDED, found);
}

/// Returns whether a path is in `data`, or `meta` itself (rulings R42, R44).
fn is_field(node: Node<'_>) -> bool {
    let path = node.as_str().and_then(|text| text.parse::<Path>().ok());
    path.is_some_and(|path| matches!(path.first(), Some(Segment::Key("data" | "meta"))))
}

// The chunks of a stream together.

/// Checks the chunks of a stream: each chunk, then their order (SPEC 3.2.3). Keep-alives, `{}`, are ignored.
pub(super) fn check_stream(standard: &Standard<'_>, document: &Document, found: &mut Vec<Violation>) {
    let nodes: Vec<(Node<'_>, &Event)> = match document {
        Document::Lines(lines) => lines.iter().map(|line| (line.value.node(), &line.event)).collect(),
        Document::One(value) if value.is_array() => {
            value.elements().map(|node| (node, &Event::None)).collect()
        }
        Document::One(value) => vec![(value.node(), &Event::None)],
    };
    let mut items = Vec::new();
    for (index, (node, event)) in nodes.into_iter().enumerate() {
        if node.is_object() && node.is_empty() {
            continue;
        }
        let item = Item { index, node, part: Part::from_chunk(node) };
        let mut own = Vec::new();
        check(standard, node, &mut own);
        own.extend(item.part.and_then(|part| check_event(part, event)));
        found.extend(own.into_iter().map(|one| Violation { path: item.path(&one.path), ..one }));
        // A heartbeat is no part of the answer.
        if node.get("chunk").is_none_or(|chunk| !chunk.is_object() || !chunk.is_empty()) {
            items.push(item);
        }
    }
    check_ends(&items, found);
    check_sessions(&items, found);
    check_numbers(&items, found);
    check_content(&items, found);
}

/// Checks that a server-sent event has the name of its chunk (SPEC 3.2.4, ruling R51).
fn check_event(part: Part, event: &Event) -> Option<Violation> {
    let name = match part {
        Part::Meta => "meta",
        Part::Numbered => "chunk",
        Part::Progress => "progress",
        Part::Final => "final",
        Part::Error => "error",
    };
    match event {
        Event::Named(found) if found != name => {
            let message = format!("found `event: {}`; allowed: `event: {name}`", shown_name(found));
            Some(violation("", "event", message))
        }
        Event::Unnamed => Some(beyond("", &format!("the event has no name; write `event: {name}`"))),
        Event::Named(_) | Event::None => None,
    }
}

/// Returns a name of a recording, for a message.
fn shown_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// Checks that only the first chunk is meta, and only the last one ends the stream.
fn check_ends(items: &[Item<'_>], found: &mut Vec<Violation>) {
    let Some((first, last)) = items.first().zip(items.last()) else {
        return found.push(violation("", "empty", "the stream has no chunks"));
    };
    if first.part != Some(Part::Meta) {
        let message = "the first chunk must be meta, with `streaming: true`";
        found.push(violation(&first.path(""), "order", message));
    }
    if !last.part.is_some_and(Part::is_end) {
        found.push(violation(&last.path(""), "order", "the stream must end with `final: true` or an error"));
    }
    for item in items.iter().skip(1).filter(|item| item.part == Some(Part::Meta)) {
        let message = "a second meta chunk; send updates as a snapshot with `field: \"meta\"`";
        found.push(violation(&item.path(""), "order", message));
    }
    let end = items.iter().position(|item| item.part.is_some_and(Part::is_end));
    for item in end.into_iter().flat_map(|end| items.iter().skip(end + 1)) {
        found.push(violation(&item.path(""), "order", "no chunk may follow the final chunk or the error"));
    }
}

/// Checks that an error has the session ID of its stream.
fn check_sessions(items: &[Item<'_>], found: &mut Vec<Violation>) {
    let meta = items.iter().find(|item| item.part == Some(Part::Meta));
    let Some(first) = meta.and_then(session) else { return };
    for item in items.iter().filter(|item| item.part == Some(Part::Error)) {
        if session(item).is_some_and(|id| id != first) {
            let message = format!("the session of this stream is `{first}`");
            found.push(violation(&item.path("session_id"), "session", message));
        }
    }
}

fn session<'a>(item: &Item<'a>) -> Option<&'a str> {
    item.node.get("session_id")?.as_str()
}

/// Checks that the sorted numbers start at 1, or where a resumed stream continues, and increase. That they have no gaps is only a
/// ruling (R41).
fn check_numbers(items: &[Item<'_>], found: &mut Vec<Violation>) {
    let resumed = items.iter().find_map(|item| item.node.get("resume_from_seq")?.as_u64());
    let start = resumed.unwrap_or(0) + 1;
    let mut expected = start;
    for (item, seq) in sorted(items) {
        let path = item.path("chunk.seq");
        match seq.cmp(&expected) {
            Ordering::Less => {
                found.push(violation(&path, "seq", format!("duplicate sequence number {seq}")));
            }
            Ordering::Equal => {}
            Ordering::Greater if expected == start => {
                found.push(violation(&path, "seq", format!("found {seq}; expected {expected}")));
            }
            Ordering::Greater => found.push(beyond(&path, &format!("found {seq}; expected {expected}"))),
        }
        expected = seq.saturating_add(1);
    }
}

// Checks the data of a stream: the checkpoints, and the sum of all chunks.

/// Checks that each checkpoint matches the text of its field so far (docs/spec/streaming.md), and that the chunks of
/// each field add up to its final value (ruling R45). What came before a resumed stream is unknown.
fn check_content(items: &[Item<'_>], found: &mut Vec<Violation>) {
    if items.iter().any(|item| item.node.get("resumed").is_some()) {
        return;
    }
    // What a chunk without a path belongs to is unknown, and so is what is missing in a gap.
    let is_vague = |item: &Item<'_>| {
        let chunk = item.node.get("chunk");
        chunk.is_some_and(|chunk| chunk.get("delta").is_some() && chunk.get("field").is_none())
    };
    let numbers = sorted(items).into_iter().map(|(_, seq)| seq);
    let has_gaps = numbers.clone().zip(numbers.skip(1)).any(|(seq, next)| next > seq.saturating_add(1));
    if has_gaps || items.iter().any(is_vague) {
        return;
    }
    let mut content = Content::default();
    for (item, _) in sorted(items) {
        if let Some(chunk) = item.node.get("chunk") {
            content.apply(item, chunk, found);
        }
    }
    let end = items.iter().find(|item| item.part == Some(Part::Final));
    if let Some((end, data)) = end.and_then(|end| Some((end, end.node.get("data")?))) {
        content.check_final(end, data, found);
    }
}

/// The content of the chunks so far.
#[derive(Default)]
struct Content {
    data: DataAccumulator,
    /// The fields of all chunks.
    fields: BTreeSet<String>,
    /// The text of each field that deltas extend.
    texts: BTreeMap<String, CheckpointHasher>,
}

impl Content {
    fn apply(&mut self, item: &Item<'_>, chunk: Node<'_>, found: &mut Vec<Violation>) {
        let field = chunk.get_str("field").unwrap_or("data");
        if let Some(delta) = chunk.get_str("delta") {
            self.check_checkpoint(item, field, delta, chunk, found);
            self.data.append(field, delta);
        } else if let Some(value) = chunk.get("data") {
            self.forget_texts(field);
            self.data.replace(field, value.to_serde());
        }
        if field.starts_with("data") {
            self.fields.insert(field.to_owned());
        }
    }

    /// Compares the checkpoint of a delta with the text of its field, to which the delta is not yet appended.
    fn check_checkpoint(
        &mut self,
        item: &Item<'_>,
        field: &str,
        delta: &str,
        chunk: Node<'_>,
        found: &mut Vec<Violation>,
    ) {
        let text = self.texts.entry(field.to_owned()).or_insert_with(|| {
            let mut text = CheckpointHasher::default();
            text.push(self.data.at(field).and_then(serde_json::Value::as_str).unwrap_or_default());
            text
        });
        text.push(delta);
        let message = chunk.get("checkpoint").and_then(|stated| mismatch(stated, &text.checkpoint()));
        if let Some(message) = message {
            found.push(violation(&item.path("chunk.checkpoint"), "checkpoint", message));
        }
    }

    /// Forgets the texts that a snapshot of `field` replaces.
    fn forget_texts(&mut self, field: &str) {
        let after = self.texts.range(field.to_owned()..).map(|(key, _)| key.clone());
        for key in after.take_while(|key| key.starts_with(field)).collect::<Vec<_>>() {
            self.texts.remove(&key);
        }
    }

    fn check_final(&self, end: &Item<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
        let mut last = DataAccumulator::default();
        last.replace("data", data.to_serde());
        for field in &self.fields {
            let Some(value) = self.data.at(field) else { continue };
            if last.at(field).map(Value::from) != Some(Value::from(value)) {
                let message = format!("the chunks of `{field}` do not add up to its final value");
                found.push(violation(&end.path(field), "content", message));
            }
        }
    }
}

/// Returns how a checkpoint differs from the checkpoint of the text so far.
fn mismatch(stated: Node<'_>, text: &Checkpoint) -> Option<String> {
    let offset = stated.get("offset")?.as_u64()?;
    let hash = stated.get("hash")?.as_str()?;
    (offset != text.offset || hash != text.hash).then(|| {
        let Checkpoint { offset: bytes, hash: right } = text;
        format!(
            "found offset {offset} and hash `{hash}`; the field so far has {bytes} bytes and hash `{right}`"
        )
    })
}
