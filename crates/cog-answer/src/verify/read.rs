//! Reads the document from text.

use cog_json::{SyntaxError, Value};
use cog_schema::Violation;

use crate::error::violation;

/// A document.
#[derive(Debug)]
pub(super) enum Document {
    /// One value.
    One(Value),
    /// One value per line.
    Lines(Vec<Value>),
}

/// Reads one JSON value, or one per line if the first line is a value, or one per server-sent event. Blank lines are
/// ignored. A text in none of these forms is one violation.
pub(super) fn read(text: &str, is_stream: bool) -> Result<Document, Box<Violation>> {
    let error = match Value::parse(text) {
        Ok(value) => return Ok(Document::One(value)),
        Err(error) => not_json(text, &error),
    };
    if let Some(events) = events(text) {
        let values = events
            .iter()
            .map(|(index, data)| Value::parse(data).map_err(|error| bad_line(*index, data, &error)));
        return Ok(Document::Lines(values.collect::<Result<_, _>>()?));
    }
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let is_by_line = lines().next().is_some_and(|(_, line)| Value::parse(line).is_ok());
    if !(is_by_line || is_stream && lines().count() > 1) {
        return Err(Box::new(error));
    }
    let values =
        lines().map(|(index, line)| Value::parse(line).map_err(|error| bad_line(index, line, &error)));
    Ok(Document::Lines(values.collect::<Result<_, _>>()?))
}

/// Returns the data of server-sent events, each with the index of its line; none if the text has another form. Data have
/// one line (SPEC 3.2.4).
fn events(text: &str) -> Option<Vec<(usize, &str)>> {
    let mut events = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (field, value) = line.split_once(':')?;
        match field {
            "data" => events.push((index, value)),
            "event" | "id" | "retry" | "" => {}
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
