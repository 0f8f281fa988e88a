//! Gemini's `responseJsonSchema`: a list of keywords that are taken; unions by `anyOf`; recursion only in members
//! that are not required, so that it is not relied on.

use cog_spec::Dialect;
use serde_json::Value;

use super::{Limits, Profile, is_format};

pub(crate) const PROFILE: Profile = Profile {
    verbatim: false,
    closes_objects: false,
    requires_all: false,
    types_all: true,
    recursion: false,
    takes,
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

const FORMATS: [&str; 3] = ["date-time", "date", "time"];

fn takes(keyword: &str, value: &Value) -> bool {
    match keyword {
        "description" | "title" | "minItems" | "maxItems" | "minimum" | "maximum" => true,
        "enum" => {
            value.as_array().is_some_and(|values| values.iter().all(|one| one.is_string() || one.is_number()))
        }
        "format" => is_format(value, &FORMATS),
        _ => false,
    }
}
