//! Streams as lines, and how they compare.

use serde_json::Value;

use crate::chunks::{Arrived, complete_lines, forget};

/// Reads complete lines of JSON. Other lines are skipped: stdout may contain other output.
pub(crate) fn read_lines(text: &str) -> Arrived {
    let mut arrived = Arrived::default();
    for line in complete_lines(text) {
        match serde_json::from_str(line) {
            Ok(Value::Object(members)) if members.is_empty() => arrived.heartbeats += 1,
            Ok(chunk) => arrived.chunks.push(chunk),
            Err(_) if line.trim().is_empty() => arrived.heartbeats += 1,
            Err(_) => {}
        }
    }
    arrived
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
