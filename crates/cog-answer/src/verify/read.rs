//! Reads the document from text.

use cog_json::{Node, SyntaxError, Value};
use cog_schema::Violation;

use super::Kind;
use crate::error::violation;

/// A document.
#[derive(Debug)]
pub(super) enum Document {
    /// One value.
    One(Value),
    /// One value per line, or per server-sent event.
    Lines(Vec<Line>),
}

/// A value of several.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) value: Value,
    pub(super) event: Event,
}

/// How a value was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// Not as a server-sent event.
    None,
    /// As an event without a name.
    Unnamed,
    /// As an event with this name.
    Named(String),
}

/// Reads one JSON value, or one per line if the first line is a value, or one per server-sent event. Blank lines are
/// ignored. Text in none of these forms is one violation.
pub(super) fn read(text: &str, is_stream: bool) -> Result<Document, Box<Violation>> {
    let error = match Value::parse(text) {
        Ok(value) => return Ok(Document::One(value)),
        Err(error) => not_json(text, &error),
    };
    if let Some(events) = events(text) {
        let values = events.into_iter().map(|SentEvent { index, data, event }| {
            let value = Value::parse(data).map_err(|error| bad_line(index, data, &error))?;
            Ok::<_, Box<Violation>>(Line { value, event })
        });
        return Ok(Document::Lines(values.collect::<Result<_, _>>()?));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let is_by_line = lines.clone().next().is_some_and(|(_, line)| Value::parse(line).is_ok());
    if !(is_by_line || is_stream && lines.clone().count() > 1) {
        return Err(Box::new(error));
    }
    let values = lines.map(|(index, line)| {
        let value = Value::parse(line).map_err(|error| bad_line(index, line, &error))?;
        Ok::<_, Box<Violation>>(Line { value, event: Event::None })
    });
    Ok(Document::Lines(values.collect::<Result<_, _>>()?))
}

/// A server-sent event with data.
struct SentEvent<'a> {
    /// The index of the line of its data.
    index: usize,
    data: &'a str,
    event: Event,
}

/// Returns the server-sent events of a text; none if it has another form. Data have one line (SPEC 3.2.4).
fn events(text: &str) -> Option<Vec<SentEvent<'_>>> {
    let mut events: Vec<SentEvent<'_>> = Vec::new();
    let mut name = Event::Unnamed;
    let mut has_data = false;
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() {
            name = Event::Unnamed;
            has_data = false;
            continue;
        }
        let (field, value) = line.split_once(':')?;
        match field {
            "data" => {
                events.push(SentEvent {
                    index,
                    data: value,
                    event: std::mem::replace(&mut name, Event::Unnamed),
                });
                has_data = true;
            }
            "event" => {
                name = Event::Named(value.strip_prefix(' ').unwrap_or(value).to_owned());
                // The fields of an event have no order: its name may follow its data.
                if let Some(last) = events.last_mut().filter(|last| has_data && last.event == Event::Unnamed)
                {
                    last.event = std::mem::replace(&mut name, Event::Unnamed);
                }
            }
            "id" | "retry" | "" => {}
            _ => return None,
        }
    }
    (!events.is_empty()).then_some(events)
}

fn not_json(text: &str, error: &SyntaxError) -> Violation {
    let at = error.position(text);
    violation("", "json", format!("not JSON: {}, at line {}, column {}", error.kind(), at.line, at.column))
}

fn bad_line(index: usize, line: &str, error: &SyntaxError) -> Box<Violation> {
    let at = error.position(line);
    let message = format!("line {} is not JSON: {}, at column {}", index + 1, error.kind(), at.column);
    Box::new(violation("", "json", message))
}

// Detects the kind of a document.

/// A chunk has at least one of these keys.
const CHUNK_KEYS: [&str; 4] = ["chunk", "final", "progress", "streaming"];

/// A media item has `type` and at least one of these keys.
const MEDIA_KEYS: [&str; 4] = ["url", "data", "path", "upload_id"];

/// Returns the kind of a document: the first one whose keys it has.
pub(super) fn kind(document: &Document, has_module: bool) -> Option<Kind> {
    let node = match document {
        Document::Lines(lines) if lines.iter().all(|line| line.value.get("role").is_some()) => {
            return Some(Kind::Messages);
        }
        Document::Lines(_) => return Some(Kind::Stream),
        Document::One(value) => Value::node(value),
    };
    let messages = node.get("messages").unwrap_or(node);
    if is_message(node) || is_list_of(messages, |item| item.get("role").is_some()) {
        Some(Kind::Messages)
    } else if node.get("protocol").is_some() {
        Some(Kind::Handoff)
    } else if is_list_of(node, |item| is_chunk(item) || item.is_object() && item.is_empty()) {
        Some(Kind::Stream)
    } else if is_chunk(node) {
        Some(Kind::Chunk)
    } else if node.get("ok").and_then(Node::as_bool).is_some() {
        Some(Kind::Envelope)
    } else if node.get("type").is_some() && MEDIA_KEYS.into_iter().any(|key| node.get(key).is_some()) {
        Some(Kind::Media)
    } else {
        has_module.then_some(Kind::Answer)
    }
}

/// Returns whether an object is one message of a history.
fn is_message(node: Node<'_>) -> bool {
    let has_content = ["content", "tool_calls"].into_iter().any(|key| node.get(key).is_some());
    node.get_str("role").is_some() && has_content && node.get("messages").is_none()
}

fn is_chunk(node: Node<'_>) -> bool {
    CHUNK_KEYS.into_iter().any(|key| node.get(key).is_some())
}

fn is_list_of(node: Node<'_>, is_item: impl Fn(Node<'_>) -> bool) -> bool {
    !node.is_empty() && node.is_array() && node.elements().all(is_item)
}
