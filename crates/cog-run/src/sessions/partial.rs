//! The partial answer of an interrupted run (ruling R43).

use cog_answer::DataAccumulator;
use cog_json::{Node, Path, Value};
use cog_spec::Chunk;
use serde_json::Value as Json;

use super::log::{Event, Log};

/// Returns the `partial_data` of a stream that its store ends.
///
/// It comes from the last final event, otherwise the data of the chunks without the fields that were reported
/// as violations. None without data, and when the oldest chunks were dropped.
pub(crate) fn from_log(log: &Log) -> Option<Value> {
    match log.entries().next_back() {
        Some((mark, line)) if mark.event == Event::Error => {
            let end = Value::parse(line).ok()?;
            end.get("partial_data").filter(|data| data.is_object()).map(|data| end.child(data))
        }
        _ if log.first_seq() > 0 => None,
        _ => applied(log),
    }
}

fn applied(log: &Log) -> Option<Value> {
    let mut accumulator = DataAccumulator::default();
    let mut violating: Vec<Path> = Vec::new();
    for (mark, line) in log.entries() {
        let value = Value::parse(line).ok()?;
        match mark.event {
            Event::Chunk => {
                let chunk = chunk(&value, value.get("chunk")?)?;
                if matches!(chunk, Chunk::Snapshot { field: None, .. }) {
                    violating.clear(); // the snapshot replaces all data
                }
                accumulator.apply(&chunk);
            }
            Event::Progress => violating.extend(violation(&value)),
            Event::Meta | Event::Final | Event::Error | Event::PartAnswer => {}
        }
    }
    let mut data = accumulator.data()?.clone();
    // The last first, so that the indexes of earlier elements do not change.
    violating.iter().rev().for_each(|path| remove(&mut data, path));
    data.as_object().filter(|members| !members.is_empty())?;
    Some(Value::from(data))
}

/// Reads a delta or a snapshot.
fn chunk(line: &Value, chunk: Node<'_>) -> Option<Chunk> {
    let seq = chunk.get("seq")?.as_u64()?;
    let field = chunk.get("field").and_then(|field| field.as_str()).map(str::to_owned);
    Some(match chunk.get("delta") {
        Some(delta) => {
            Chunk::Delta { seq, field: field?, delta: delta.as_str()?.to_owned(), checkpoint: None }
        }
        None => Chunk::Snapshot { seq, field, data: line.child(chunk.get("data")?) },
    })
}

/// Returns the field that a progress chunk reports as a violation.
fn violation(progress: &Value) -> Option<Path> {
    progress.get("progress")?.get("violation")?.get("path")?.as_str()?.parse().ok()
}

/// Removes a field from the data. An absent field is skipped.
fn remove(data: &mut Json, path: &Path) {
    let pointer = path.pointer();
    let Some((parent, key)) = pointer.strip_prefix("/data").and_then(|inner| inner.rsplit_once('/')) else {
        return;
    };
    match data.pointer_mut(parent) {
        Some(Json::Object(members)) => drop(members.remove(&key.replace("~1", "/").replace("~0", "~"))),
        Some(Json::Array(elements)) => {
            if let Some(index) = key.parse().ok().filter(|index| *index < elements.len()) {
                elements.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(lines: &[&str]) -> Option<String> {
        let mut log = Log::default();
        log.push_line(r#"{"ok":true,"streaming":true,"session_id":"s"}"#, Event::Meta, None, false);
        for line in lines {
            let value = Value::parse(line).unwrap();
            let seq = value.get("chunk").and_then(|chunk| chunk.get("seq")?.as_u64());
            let event = match (seq, value.get("error")) {
                (Some(_), _) => Event::Chunk,
                (None, Some(_)) => Event::Error,
                (None, None) => Event::Progress,
            };
            log.push_line(line, event, seq, false);
        }
        from_log(&log).map(|data| data.to_string())
    }

    const ONE: &str = r#"{"chunk":{"seq":1,"type":"delta","field":"data.a","delta":"be"}}"#;
    const TWO: &str = r#"{"chunk":{"seq":2,"type":"snapshot","field":"data.b[0]","data":7}}"#;
    const WRONG: &str =
        r#"{"progress":{"percent":1,"violation":{"path":"data.b[0]","rule":"type","message":"m"}}}"#;

    #[test]
    fn contains_the_chunks_without_violating_fields() {
        assert_eq!(partial(&[]), None);
        assert_eq!(partial(&[ONE, TWO]).unwrap(), r#"{"a":"be","b":[7]}"#);
        assert_eq!(partial(&[ONE, TWO, WRONG]).unwrap(), r#"{"a":"be","b":[]}"#);
    }

    #[test]
    fn omits_retracted_data() {
        let retraction = r#"{"chunk":{"seq":3,"type":"snapshot","data":{}}}"#;
        assert_eq!(partial(&[ONE, TWO, retraction]), None);
        let again = r#"{"chunk":{"seq":4,"type":"snapshot","field":"data.b[0]","data":8}}"#;
        assert_eq!(partial(&[ONE, TWO, WRONG, retraction, again]).unwrap(), r#"{"b":[8]}"#);
    }

    #[test]
    fn uses_the_data_of_the_final_event() {
        let end = r#"{"ok":false,"error":{"code":"E2010"},"partial_data":{"a":"b"}}"#;
        assert_eq!(partial(&[ONE, end]).unwrap(), r#"{"a":"b"}"#);
        assert_eq!(partial(&[ONE, r#"{"ok":false,"error":{"code":"E2010"}}"#]), None);
    }
}
