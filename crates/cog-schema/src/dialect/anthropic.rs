//! Anthropic's structured outputs (`output_config.format`): every object closed, no recursion, no limits of number
//! or length, patterns of a simple kind.

use cog_spec::Dialect;
use serde_json::Value;

use super::{Limits, Profile, are_scalars, is_format};

pub(crate) const PROFILE: Profile = Profile {
    verbatim: false,
    closes_objects: true,
    requires_all: false,
    types_all: false,
    recursion: false,
    takes,
    limits: Limits { optional_members: 24, union_members: 16, ..Limits::NONE },
    weaker: Dialect::Prompt,
};

const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

fn takes(keyword: &str, value: &Value) -> bool {
    match keyword {
        "description" | "title" | "const" | "default" => true,
        "enum" => are_scalars(value),
        "format" => is_format(value, &FORMATS),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        "pattern" => value.as_str().is_some_and(is_simple),
        _ => false,
    }
}

/// Without word boundaries and counted repeats, which are compiled to large grammars or refused.
fn is_simple(pattern: &str) -> bool {
    !["\\b", "\\B", "{", "(?"].iter().any(|hard| pattern.contains(hard))
}
