use std::cmp::Ordering;

use cog_json::{Node, Value};
use cog_schema::Violation;

use super::{
    Item,
    chunk::{self, Part},
    content,
    module::Standard,
    read::Document,
    sorted,
};
use crate::error::violation;

/// Checks the chunks of a stream: each chunk, then their order (SPEC 3.2.3). Keep-alives, `{}`, are ignored.
pub(super) fn check(standard: &Standard<'_>, document: &Document, found: &mut Vec<Violation>) {
    let nodes: Vec<Node<'_>> = match document {
        Document::Lines(lines) => lines.iter().map(Value::node).collect(),
        Document::One(value) if value.is_array() => value.elements().collect(),
        Document::One(value) => vec![value.node()],
    };
    let is_keep_alive = |node: &Node<'_>| node.is_object() && node.is_empty();
    let items = nodes.into_iter().enumerate().filter(|(_, node)| !is_keep_alive(node));
    let items: Vec<Item<'_>> =
        items.map(|(index, node)| Item { index, node, part: Part::from_chunk(node) }).collect();
    for item in &items {
        let mut own = Vec::new();
        chunk::check(standard, item.node, &mut own);
        found.extend(own.into_iter().map(|one| Violation { path: item.path(&one.path), ..one }));
    }
    check_ends(&items, found);
    check_sessions(&items, found);
    check_numbers(&items, found);
    content::check(&items, found);
}

/// Checks that only the first chunk is meta, and only the last one ends the stream.
fn check_ends(items: &[Item<'_>], found: &mut Vec<Violation>) {
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
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
    let session = |item: &Item<'_>| item.node.get("session_id").and_then(|id| id.as_str().map(str::to_owned));
    let Some(first) = items.iter().find(|item| item.part == Some(Part::Meta)).and_then(session) else {
        return;
    };
    for item in items.iter().filter(|item| item.part == Some(Part::Error)) {
        if session(item).is_some_and(|id| id != first) {
            let message = format!("the session of this stream is `{first}`");
            found.push(violation(&item.path("session_id"), "session", message));
        }
    }
}

/// Checks that the sorted numbers start at 1, or where a resumed stream continues, and have no gaps.
fn check_numbers(items: &[Item<'_>], found: &mut Vec<Violation>) {
    let resumed = items.iter().find_map(|item| item.node.get("resume_from_seq")?.as_u64());
    let mut expected = resumed.unwrap_or(0) + 1;
    for (item, seq) in sorted(items) {
        let message = match seq.cmp(&expected) {
            Ordering::Less => Some(format!("duplicate sequence number {seq}")),
            Ordering::Equal => None,
            Ordering::Greater => Some(format!("found {seq}; expected {expected}")),
        };
        found.extend(message.map(|message| violation(&item.path("chunk.seq"), "seq", message)));
        expected = seq.saturating_add(1);
    }
}
