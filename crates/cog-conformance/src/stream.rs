//! Streams as they arrive, and the result of their chunks.

use serde_json::{Map, Value, json};

/// The part of a stream that has arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// The chunks, heartbeats left out.
    pub(crate) chunks: Vec<Value>,
    /// `{event, id, data}` of each server-sent event.
    pub(crate) events: Vec<Value>,
    /// Comments of server-sent events, and empty lines.
    pub(crate) heartbeats: usize,
}

/// Reads complete server-sent events.
pub(crate) fn read_events(text: &str) -> Stream {
    let mut stream = Stream::default();
    let mut event = Map::new();
    for line in complete_lines(text) {
        if line.is_empty() {
            if let Some(data) = event.get("data").and_then(Value::as_str) {
                let data: Value = serde_json::from_str(data).unwrap_or_default();
                stream.chunks.push(data.clone());
                event.insert("data".to_owned(), data);
                stream.events.push(Value::Object(std::mem::take(&mut event)));
            }
            event.clear();
        } else if line.starts_with(':') {
            stream.heartbeats += 1;
        } else if let Some((field, value)) = line.split_once(':') {
            event.insert(field.to_owned(), json!(value.strip_prefix(' ').unwrap_or(value)));
        }
    }
    stream
}

/// Reads complete lines of JSON. Other lines are skipped: stdout may contain other output.
pub(crate) fn read_lines(text: &str) -> Stream {
    let mut stream = Stream::default();
    for line in complete_lines(text) {
        match serde_json::from_str(line) {
            Ok(Value::Object(members)) if members.is_empty() => stream.heartbeats += 1,
            Ok(chunk) => stream.chunks.push(chunk),
            Err(_) if line.trim().is_empty() => stream.heartbeats += 1,
            Err(_) => {}
        }
    }
    stream
}

/// Returns the complete lines.
fn complete_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

/// Returns the kind of each chunk: `meta`, `delta`, `snapshot`, `progress`, `final`, `error`.
pub(crate) fn kinds(chunks: &[Value]) -> Value {
    chunks.iter().map(|chunk| Value::from(kind(chunk))).collect()
}

fn kind(chunk: &Value) -> &str {
    if let Some(kind) = chunk.pointer("/chunk/type").and_then(Value::as_str) {
        return kind;
    }
    let keys = ["progress", "final", "error", "meta"];
    keys.into_iter().find(|key| chunk.get(key).is_some()).unwrap_or("?")
}

/// Returns the chunks without the members that differ from run to run.
pub(crate) fn comparable(chunks: &[Value]) -> Vec<Value> {
    let mut chunks = chunks.to_vec();
    for chunk in &mut chunks {
        forget(chunk, "session_id");
        for place in ["/meta", "/chunk/data"] {
            chunk.pointer_mut(place).into_iter().for_each(|meta| forget(meta, "processing_time_ms"));
        }
    }
    chunks
}

/// Removes a member.
fn forget(value: &mut Value, key: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(key);
    }
}

/// Returns the envelope of the chunks (rulings R40, R43), without its duration.
pub(crate) fn fold(chunks: &[Value]) -> Result<Value, String> {
    let end = chunks.last().ok_or("no chunks")?;
    Ok(folded(if end.get("final").is_some() { success(end) } else { failure(end, chunks) }))
}

/// Returns a sync answer in the form of [`fold`].
pub(crate) fn folded(mut envelope: Value) -> Value {
    envelope.pointer_mut("/meta").into_iter().for_each(|meta| forget(meta, "processing_time_ms"));
    if let Some(members) = envelope.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    envelope
}

fn success(end: &Value) -> Value {
    let mut meta = member_of(end, "meta");
    if let (Some(usage), Some(meta)) = (end.get("usage"), meta.as_object_mut()) {
        meta.insert("usage".to_owned(), usage.clone());
    }
    json!({
        "ok": true,
        "meta": meta,
        "data": end.get("data"),
        "_warnings": end.get("_warnings"),
        "_emitted_context": end.get("_emitted_context"),
    })
}

fn failure(end: &Value, chunks: &[Value]) -> Value {
    let mut error = member_of(end, "error");
    if let Some(code) = error.get_mut("code").filter(|code| **code == "E2011") {
        *code = json!("E2002");
    }
    forget(&mut error, "recovery");
    let numbered = chunks.iter().rev().filter_map(|chunk| chunk.get("chunk"));
    let meta =
        numbered.filter(|chunk| member_of(chunk, "field") == "meta").find_map(|chunk| chunk.get("data"));
    let meta = match meta {
        Some(meta) => meta.clone(),
        None => json!({ "confidence": 0.0, "risk": "high", "explain": error.get("message") }),
    };
    json!({ "ok": false, "meta": meta, "error": error, "partial_data": end.get("partial_data") })
}

fn member_of(value: &Value, key: &str) -> Value {
    value.get(key).cloned().unwrap_or_default()
}

/// Returns `data` after all numbered chunks were applied in order: deltas are appended, snapshots replace (SPEC 3.2).
/// None if a chunk has an invalid path.
pub(crate) fn applied(chunks: &[Value]) -> Option<Value> {
    let mut envelope = json!({});
    for chunk in chunks.iter().filter_map(|chunk| chunk.get("chunk")) {
        let field = chunk.get("field").and_then(Value::as_str).unwrap_or("data");
        let value = value_at(&mut envelope, field)?;
        match chunk.get("delta").and_then(Value::as_str) {
            Some(delta) => *value = json!(format!("{}{delta}", value.as_str().unwrap_or_default())),
            None => *value = chunk.get("data")?.clone(),
        }
    }
    Some(envelope.get("data").cloned().unwrap_or_default())
}

/// Returns the value at a path such as `data.a[0]["b c"]`, and creates it if it is missing (ruling R44).
fn value_at<'a>(root: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let mut value = root;
    let mut rest = field;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inner) = rest.strip_prefix('[') {
            let mut steps = serde_json::Deserializer::from_str(inner).into_iter::<Value>();
            let step = steps.next()?.ok()?;
            rest = inner.get(steps.byte_offset()..)?.strip_prefix(']')?;
            value = match step.as_u64() {
                Some(index) => element(value, usize::try_from(index).ok()?)?,
                None => member(value, step.as_str()?),
            };
        } else {
            let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            value = member(value, key);
            rest = after;
        }
    }
    Some(value)
}

fn member<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(members) => members.entry(key).or_insert(Value::Null),
        other => other,
    }
}

fn element(value: &mut Value, index: usize) -> Option<&mut Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    let elements = value.as_array_mut()?;
    if index == elements.len() {
        elements.push(Value::Null);
    }
    elements.get_mut(index)
}
