//! OpenAI's strict schemas (`response_format` with `strict: true`), as documented for gpt-4o and later: the root
//! an object, every object closed, every member required, unions by `anyOf`, no composition otherwise.

use cog_spec::Dialect;
use serde_json::Value;

use super::{Limits, Profile, are_scalars, is_format};

pub(crate) const PROFILE: Profile = Profile {
    verbatim: false,
    closes_objects: true,
    requires_all: true,
    types_all: true,
    recursion: true,
    takes,
    limits: Limits { members: 5_000, depth: 10, enum_values: 1_000, text: 120_000, ..Limits::NONE },
    weaker: Dialect::JsonSchema,
};

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

fn takes(keyword: &str, value: &Value) -> bool {
    match keyword {
        "description" | "title" | "const" | "pattern" | "multipleOf" | "minimum" | "maximum"
        | "exclusiveMinimum" | "exclusiveMaximum" | "minItems" | "maxItems" => true,
        "enum" => are_scalars(value),
        "format" => is_format(value, &FORMATS),
        _ => false,
    }
}
