//! Small media files for samples.

use serde_json::{Map, Value, json};

use crate::engine::Pattern;

/// A file: its type, its base64, and its properties.
struct Sample {
    media_type: &'static str,
    data: &'static str,
    facts: &'static [(&'static str, u64)],
}

const MEDIA: [Sample; 2] = [
    // A chessboard.
    Sample {
        media_type: "image/png",
        data: "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAAE0lEQVR42mPg52eAow8fEAiHOAAqXw/xPczXZQAAAABJRU5ErkJggg==",
        facts: &[("width", 16), ("height", 16)],
    },
    // Two milliseconds of silence.
    Sample {
        media_type: "audio/wav",
        data: "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA",
        facts: &[("duration_ms", 2)],
    },
];

/// Returns a file that a media schema accepts, if there is one.
pub(super) fn sample(members: &Map<String, Value>) -> Option<Value> {
    let properties = members.get("properties")?.as_object()?;
    let allows =
        |member: &str, value: &str| properties.get(member).is_none_or(|schema| accepts(schema, value));
    let sample = MEDIA.iter().find(|sample| allows("media_type", sample.media_type))?;
    if !allows("type", "base64") {
        return None;
    }
    let mut value = json!({ "type": "base64", "media_type": sample.media_type, "data": sample.data });
    let facts = sample.facts.iter().filter(|(name, _)| properties.contains_key(*name));
    value.as_object_mut()?.extend(facts.map(|(name, fact)| ((*name).to_owned(), Value::from(*fact))));
    Some(value)
}

/// Returns whether `const`, `enum` and `pattern` of a schema allow a value.
fn accepts(schema: &Value, value: &str) -> bool {
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let values = schema.get("enum").and_then(Value::as_array);
    text("const").is_none_or(|only| only == value)
        && values.is_none_or(|values| values.iter().any(|one| one == value))
        && text("pattern").is_none_or(|pattern| Pattern::new(pattern).is_ok_and(|it| it.is_match(value)))
}
