//! Real media, small enough to stand in the code.

use serde_json::{Map, Value, json};

use crate::engine::Pattern;

/// One to choose from: its type, what it is as base64, and its facts.
struct Medium {
    media_type: &'static str,
    data: &'static str,
    facts: &'static [(&'static str, u64)],
}

const MEDIA: [Medium; 2] = [
    // A chessboard.
    Medium {
        media_type: "image/png",
        data: "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAAE0lEQVR42mPg52eAow8fEAiHOAAqXw/xPczXZQAAAABJRU5ErkJggg==",
        facts: &[("width", 16), ("height", 16)],
    },
    // Two milliseconds of silence.
    Medium {
        media_type: "audio/wav",
        data: "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA",
        facts: &[("duration_ms", 2)],
    },
];

/// A medium for a place that is described so; none where there is none that may stand there.
pub(super) fn medium(members: &Map<String, Value>) -> Option<Value> {
    let properties = members.get("properties")?.as_object()?;
    let takes = |member: &str, word: &str| properties.get(member).is_none_or(|schema| accepts(schema, word));
    let medium = MEDIA.iter().find(|medium| takes("media_type", medium.media_type))?;
    if !takes("type", "base64") {
        return None;
    }
    let mut value = json!({ "type": "base64", "media_type": medium.media_type, "data": medium.data });
    let facts = medium.facts.iter().filter(|(name, _)| properties.contains_key(*name));
    value.as_object_mut()?.extend(facts.map(|(name, fact)| ((*name).to_owned(), Value::from(*fact))));
    Some(value)
}

/// As far as `const`, `enum` and `pattern` say it.
fn accepts(schema: &Value, word: &str) -> bool {
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let words = schema.get("enum").and_then(Value::as_array);
    text("const").is_none_or(|only| only == word)
        && words.is_none_or(|words| words.iter().any(|one| one == word))
        && text("pattern").is_none_or(|pattern| Pattern::new(pattern).is_ok_and(|it| it.is_match(word)))
}
