//! How large a document may be. A schema is written by hand; what is larger is a mistake or an attack.

use serde_json::Value;

use crate::schema_error::SchemaError;

/// Bytes of all keys and strings.
const BYTES: usize = 1 << 20;
/// Values of any kind.
const NODES: usize = 10_000;
/// Containers inside each other.
const DEPTH: usize = 64;

/// Counts before anything else walks over the document.
pub(super) fn check(document: &Value) -> Result<(), SchemaError> {
    let (mut nodes, mut bytes) = (0, 0);
    let mut open = vec![(document, 1)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        bytes += own_bytes(value);
        let excess = [("values", nodes, NODES), ("bytes", bytes, BYTES), ("levels", depth, DEPTH)]
            .into_iter()
            .find(|(_, count, most)| count > most);
        if let Some((unit, _, most)) = excess {
            let message = format!("the schema is too large: more than {most} {unit}");
            return Err(SchemaError::new("", message).suggest("Split the module, or simplify its schema."));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn own_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Object(members) => members.keys().map(String::len).sum(),
        _ => 0,
    }
}
