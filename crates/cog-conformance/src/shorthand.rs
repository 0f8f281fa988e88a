//! Shorthand for long texts.

use serde_json::Value;

/// Expands every `{"$repeat": [text, times]}` and `{"$join": [texts]}` in a value.
pub(crate) fn expanded(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(expanded).collect(),
        Value::Object(members) => {
            let members: serde_json::Map<_, _> =
                members.into_iter().map(|(key, member)| (key, expanded(member))).collect();
            let text =
                members.get("$repeat").and_then(repeated).or_else(|| members.get("$join").and_then(joined));
            text.map_or(Value::Object(members), Value::String)
        }
        other => other,
    }
}

fn repeated(repeat: &Value) -> Option<String> {
    let times = usize::try_from(repeat.get(1)?.as_u64()?).ok()?;
    Some(repeat.get(0)?.as_str()?.repeat(times))
}

fn joined(parts: &Value) -> Option<String> {
    parts.as_array()?.iter().map(Value::as_str).collect()
}
