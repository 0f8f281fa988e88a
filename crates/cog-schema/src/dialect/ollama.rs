//! Ollama's `format`: a schema that is made a grammar by llama.cpp's converter. It ignores what it does not know,
//! cannot mix members with alternatives, and takes anchored patterns only.

use cog_spec::Dialect;
use serde_json::Value;

use super::{Limits, Profile, is_format};

pub(crate) const PROFILE: Profile = Profile {
    verbatim: false,
    closes_objects: false,
    requires_all: false,
    types_all: false,
    recursion: true,
    takes,
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

const FORMATS: [&str; 4] = ["date", "time", "date-time", "uuid"];

fn takes(keyword: &str, value: &Value) -> bool {
    match keyword {
        "description" | "title" | "const" | "enum" | "minItems" | "maxItems" | "minLength" | "maxLength" => {
            true
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_i64() || value.is_u64(),
        "format" => is_format(value, &FORMATS),
        "pattern" => value.as_str().is_some_and(|pattern| pattern.starts_with('^') && pattern.ends_with('$')),
        _ => false,
    }
}
