//! The schema dialects of providers.

use cog_spec::Dialect;
use serde_json::{Map, Value};

use crate::pattern::grammar_pattern;
use crate::pattern::{is_simple, with_plain_classes};
use crate::subschema::names_type;

/// The types of a value that can be anything, in dialects whose objects and arrays must be described.
const SCALARS: &[&str] = &["string", "number", "boolean", "null"];
/// The types of JSON.
pub(crate) const ALL_TYPES: &[&str] = &["string", "number", "boolean", "null", "object", "array"];

/// How a dialect differs from JSON Schema.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Schemas are sent as written; the other fields do not apply.
    pub(crate) verbatim: bool,
    /// The vendor shows the schema to the model, so that the prompt need not repeat it. Servers that only constrain what
    /// the model writes do not show it.
    pub(crate) shows_schema: bool,
    /// The root may be a choice (`anyOf`), here between success and failure. Otherwise the choice is the value of
    /// [`WRAPPER`], the only member of the root.
    pub(crate) root_choice: bool,
    /// The bounds of a number that is not an integer are enforced while the model writes.
    pub(crate) bounds_numbers: bool,
    /// Texts and arrays without a maximum length get one: a small model would otherwise write without an end.
    pub(crate) adds_bounds: bool,
    /// Objects have exactly the members that they name.
    pub(crate) closes_objects: bool,
    /// Every member is required; optional members become nullable.
    pub(crate) requires_all: bool,
    /// The types of a value that can be anything: a schema without a type is refused.
    pub(crate) any: &'static [&'static str],
    /// Where schemas may be recursive.
    pub(crate) recursion: Recursion,
    /// How the schemas of an array's positions are sent.
    pub(crate) tuples: Tuples,
    /// Returns whether a keyword that is neither structural nor a pattern is supported with this value, next to the type,
    /// pattern and format that are sent.
    pub(crate) supports: fn(keyword: &str, value: &Value, sent: &Map<String, Value>) -> bool,
    /// Returns a pattern in the form in which it is sent; none if it is not supported.
    pub(crate) pattern: fn(pattern: &str) -> Option<String>,
    /// The maximum size of a schema.
    pub(crate) limits: Limits,
    /// The dialect for contracts that this one cannot express.
    pub(crate) weaker: Dialect,
}

/// The key that contains the envelope in dialects whose root must be an object without alternatives.
const WRAPPER: &str = "envelope";

impl Profile {
    /// Returns the key that contains the envelope; none if the envelope is the root.
    pub(crate) fn wrapper(&self) -> Option<&'static str> {
        (!self.root_choice).then_some(WRAPPER)
    }
}

/// Where schemas may be recursive.
#[derive(Debug, PartialEq)]
pub(crate) enum Recursion {
    Anywhere,
    /// Only in members that are not required.
    InOptionalMembers,
    Nowhere,
}

/// How the schemas of an array's positions are sent.
#[derive(Debug)]
pub(crate) enum Tuples {
    /// Not at all: each item matches any of them.
    AnyOf,
    /// As `prefixItems`.
    PrefixItems,
    /// As a list in `items`, for arrays of exactly this length.
    ExactItems,
}

/// The maximum size of a projected schema.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Members of all objects.
    pub(crate) members: usize,
    /// Members that are not required.
    pub(crate) optional_members: usize,
    /// Members that accept several types.
    pub(crate) union_members: usize,
    /// Nested objects.
    pub(crate) depth: usize,
    /// Values of all enums.
    pub(crate) enum_values: usize,
    /// Characters of all names and enum values.
    pub(crate) text: usize,
    /// Characters of one enum of more than [`LARGE_ENUM`] values.
    pub(crate) large_enum_text: usize,
}

/// The number of values from which the text of one enum is limited.
pub(crate) const LARGE_ENUM: usize = 250;

impl Limits {
    /// No documented limit.
    const NONE: Limits = Limits {
        members: usize::MAX,
        optional_members: usize::MAX,
        union_members: usize::MAX,
        depth: usize::MAX,
        enum_values: usize::MAX,
        text: usize::MAX,
        large_enum_text: usize::MAX,
    };
}

/// Returns the profile of a dialect; none if it has no schema.
pub(crate) fn profile(dialect: Dialect) -> Option<&'static Profile> {
    match dialect {
        Dialect::OpenAiStrict => Some(&OPENAI_STRICT),
        Dialect::JsonSchema => Some(&JSON_SCHEMA),
        Dialect::Anthropic => Some(&ANTHROPIC),
        Dialect::Gemini => Some(&GEMINI),
        Dialect::LlamaCpp => Some(&LLAMACPP),
        Dialect::JsonObject | Dialect::Prompt => None,
    }
}

/// OpenAI's strict schemas (`response_format` with `strict: true`), as documented for gpt-4o and later: the root is
/// an object, objects are closed, every member is required, unions use `anyOf`, and no other composition is supported.
const OPENAI_STRICT: Profile = Profile {
    verbatim: false,
    shows_schema: true,
    root_choice: false,
    bounds_numbers: true,
    adds_bounds: false,
    closes_objects: true,
    requires_all: true,
    any: SCALARS,
    recursion: Recursion::Anywhere,
    tuples: Tuples::AnyOf,
    supports: |keyword, value, _| match keyword {
        "description" | "title" | "const" | "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "minItems" | "maxItems" => true,
        "enum" => are_scalars(value),
        "format" => is_one_of(
            value,
            &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
        ),
        _ => false,
    },
    pattern: |pattern| Some(with_plain_classes(pattern)),
    limits: Limits {
        members: 5_000,
        depth: 10,
        enum_values: 1_000,
        text: 120_000,
        large_enum_text: 15_000,
        ..Limits::NONE
    },
    weaker: Dialect::JsonSchema,
};

/// A JSON Schema in `response_format`, sent as written (vLLM, Together and others; OpenAI without `strict`).
/// The server ignores keywords that its grammar does not support.
const JSON_SCHEMA: Profile = Profile {
    verbatim: true,
    shows_schema: false,
    root_choice: true,
    bounds_numbers: false,
    adds_bounds: false,
    closes_objects: false,
    requires_all: false,
    any: ALL_TYPES,
    recursion: Recursion::Anywhere,
    tuples: Tuples::AnyOf,
    supports: |_, _, _| true,
    pattern: |pattern| Some(with_plain_classes(pattern)),
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

/// Anthropic's structured outputs (`output_config.format`): closed objects, no recursion, no limits of numbers and
/// lengths, simple patterns.
const ANTHROPIC: Profile = Profile {
    verbatim: false,
    shows_schema: true,
    root_choice: false,
    bounds_numbers: false,
    adds_bounds: false,
    closes_objects: true,
    requires_all: false,
    any: SCALARS,
    recursion: Recursion::Nowhere,
    tuples: Tuples::AnyOf,
    supports: |keyword, value, _| match keyword {
        "description" | "title" | "default" => true,
        "const" => is_scalar(value),
        "enum" => are_scalars(value),
        "format" => is_one_of(
            value,
            &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
        ),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        _ => false,
    },
    pattern: |pattern| Some(with_plain_classes(pattern)).filter(|pattern| is_simple(pattern)),
    limits: Limits { optional_members: 24, union_members: 16, ..Limits::NONE },
    // Anthropic has no mode for any JSON object.
    weaker: Dialect::Prompt,
};

/// Gemini's `responseJsonSchema`: a list of supported keywords, and unions with `anyOf`.
const GEMINI: Profile = Profile {
    verbatim: false,
    shows_schema: true,
    root_choice: false,
    bounds_numbers: true,
    adds_bounds: false,
    closes_objects: false,
    requires_all: false,
    any: SCALARS,
    recursion: Recursion::InOptionalMembers,
    tuples: Tuples::PrefixItems,
    supports: |keyword, value, _| match keyword {
        "description" | "title" | "minItems" | "maxItems" | "minimum" | "maximum" => true,
        "enum" => {
            value.as_array().is_some_and(|values| values.iter().all(|one| one.is_string() || one.is_number()))
        }
        "format" => is_one_of(value, &["date-time", "date", "time"]),
        _ => false,
    },
    pattern: |_| None,
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

/// The grammar of llama.cpp, which its server and Ollama's `format` use. It ignores unknown keywords, cannot combine
/// members with alternatives, contains only one of pattern, format and length, and refuses schemas without a type and
/// many repetitions.
const LLAMACPP: Profile = Profile {
    verbatim: false,
    shows_schema: false,
    root_choice: true,
    bounds_numbers: false,
    adds_bounds: true,
    closes_objects: false,
    requires_all: false,
    any: ALL_TYPES,
    recursion: Recursion::Anywhere,
    tuples: Tuples::ExactItems,
    supports: |keyword, value, sent| match keyword {
        "description" | "title" | "const" | "enum" => true,
        "minItems" | "maxItems" => value.as_u64().is_some_and(|size| size <= MAX_ITEMS),
        "format" => is_one_of(value, &["date", "time", "date-time", "uuid"]) && !sent.contains_key("pattern"),
        "minLength" | "maxLength" => {
            let has_form = sent.contains_key("pattern") || sent.contains_key("format");
            value.as_u64().is_some_and(|size| size <= MAX_LENGTH) && !has_form
        }
        // The grammar writes bounds as alternatives of digits, which it has for integers only.
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            (value.is_i64() || value.is_u64()) && sent.get("type").is_some_and(has_integers_only)
        }
        _ => false,
    },
    pattern: |pattern| grammar_pattern(&with_plain_classes(pattern)),
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

/// The maximum limits of lengths that every version of llama.cpp accepts, in items and characters.
pub(crate) const MAX_ITEMS: u64 = 1_000;
pub(crate) const MAX_LENGTH: u64 = 1_999;

/// JSON Schema as it is written in a module.
pub(crate) const AS_WRITTEN: &Profile = &JSON_SCHEMA;

fn is_one_of(value: &Value, formats: &[&str]) -> bool {
    value.as_str().is_some_and(|format| formats.contains(&format))
}

fn are_scalars(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(is_scalar))
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Returns whether a type has integers, but no other numbers.
fn has_integers_only(kind: &Value) -> bool {
    names_type(Some(kind), "integer") && !names_type(Some(kind), "number")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns whether a dialect supports a keyword of a schema.
    fn supports(dialect: Dialect, keyword: &str, value: &Value, sent: &Value) -> bool {
        (profile(dialect).unwrap().supports)(keyword, value, sent.as_object().unwrap())
    }

    #[test]
    fn keywords_are_supported_by_their_values() {
        for (dialect, keyword, supported, unsupported) in [
            (Dialect::OpenAiStrict, "format", json!(["date", "ipv6"]), json!(["uri", "regex"])),
            (Dialect::OpenAiStrict, "enum", json!([["a", 1, null]]), json!([[[1]], ["a", {}]])),
            (Dialect::Anthropic, "description", json!(["A line."]), json!([])),
            (Dialect::Anthropic, "default", json!([1]), json!([])),
            (Dialect::Anthropic, "format", json!(["date", "uri"]), json!(["regex", "iri"])),
            (Dialect::Anthropic, "const", json!(["a", null]), json!([[1], {}])),
            (Dialect::Anthropic, "minItems", json!([0, 1]), json!([2])),
            (Dialect::Gemini, "format", json!(["date", "time"]), json!(["email"])),
            (Dialect::Gemini, "enum", json!([["a", 1]]), json!([["a", null]])),
            (Dialect::LlamaCpp, "maxItems", json!([0, 1_000]), json!([1_001])),
            (Dialect::LlamaCpp, "maxLength", json!([0, 1_999]), json!([2_000])),
        ] {
            for (values, is_supported) in [(supported, true), (unsupported, false)] {
                for value in values.as_array().unwrap() {
                    let found = supports(dialect, keyword, value, &json!({}));
                    assert_eq!(found, is_supported, "{dialect} {keyword} {value}");
                }
            }
        }
    }

    #[test]
    fn llamacpp_has_bounds_of_integers_only() {
        let is_bounded = |kind: Value, bound: Value| {
            supports(Dialect::LlamaCpp, "minimum", &bound, &json!({ "type": kind }))
        };
        assert!(is_bounded(json!("integer"), json!(3)));
        assert!(is_bounded(json!("integer"), json!(-3)));
        assert!(is_bounded(json!(["integer", "null"]), json!(u64::MAX)));
        assert!(!is_bounded(json!("integer"), json!(1.5)));
        assert!(!is_bounded(json!(["integer", "number"]), json!(3)));
        assert!(!is_bounded(json!("string"), json!(3)));
    }
}
