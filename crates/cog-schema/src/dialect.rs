//! The schema dialects of providers.

use cog_spec::Dialect;
use serde_json::Value;

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
    /// Objects have exactly the members that they name.
    pub(crate) closes_objects: bool,
    /// Every member is required; optional members become nullable.
    pub(crate) requires_all: bool,
    /// Every schema needs a type.
    pub(crate) types_all: bool,
    /// Schemas may be recursive.
    pub(crate) recursion: bool,
    /// Returns whether a keyword that is not structural is supported with this value.
    pub(crate) supports: fn(keyword: &str, value: &Value) -> bool,
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
}

impl Limits {
    /// No documented limit.
    const NONE: Limits = Limits {
        members: usize::MAX,
        optional_members: usize::MAX,
        union_members: usize::MAX,
        depth: usize::MAX,
        enum_values: usize::MAX,
        text: usize::MAX,
    };
}

/// Returns the profile of a dialect; none if it has no schema.
pub(crate) fn profile(dialect: Dialect) -> Option<&'static Profile> {
    match dialect {
        Dialect::OpenAiStrict => Some(&OPENAI_STRICT),
        Dialect::JsonSchema => Some(&JSON_SCHEMA),
        Dialect::Anthropic => Some(&ANTHROPIC),
        Dialect::Gemini => Some(&GEMINI),
        Dialect::Ollama => Some(&OLLAMA),
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
    closes_objects: true,
    requires_all: true,
    types_all: true,
    recursion: true,
    supports: |keyword, value| match keyword {
        "description" | "title" | "const" | "pattern" | "multipleOf" | "minimum" | "maximum"
        | "exclusiveMinimum" | "exclusiveMaximum" | "minItems" | "maxItems" => true,
        "enum" => are_scalars(value),
        "format" => is_one_of(
            value,
            &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
        ),
        _ => false,
    },
    limits: Limits { members: 5_000, depth: 10, enum_values: 1_000, text: 120_000, ..Limits::NONE },
    weaker: Dialect::JsonSchema,
};

/// A JSON Schema in `response_format`, sent as written (vLLM, llama.cpp, Mistral and others; OpenAI without `strict`).
/// The server ignores keywords that its grammar does not support.
const JSON_SCHEMA: Profile = Profile {
    verbatim: true,
    shows_schema: false,
    root_choice: true,
    bounds_numbers: false,
    closes_objects: false,
    requires_all: false,
    types_all: false,
    recursion: true,
    supports: |_, _| true,
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
    closes_objects: true,
    requires_all: false,
    types_all: false,
    recursion: false,
    supports: |keyword, value| match keyword {
        "description" | "title" | "const" | "default" => true,
        "enum" => are_scalars(value),
        "format" => is_one_of(
            value,
            &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
        ),
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        "pattern" => value.as_str().is_some_and(is_simple),
        _ => false,
    },
    limits: Limits { optional_members: 24, union_members: 16, ..Limits::NONE },
    weaker: Dialect::Prompt,
};

/// Gemini's `responseJsonSchema`: a list of supported keywords, and unions with `anyOf`. It supports recursion only in
/// optional members, so recursion is not used.
const GEMINI: Profile = Profile {
    verbatim: false,
    shows_schema: true,
    root_choice: false,
    bounds_numbers: true,
    closes_objects: false,
    requires_all: false,
    types_all: true,
    recursion: false,
    supports: |keyword, value| match keyword {
        "description" | "title" | "minItems" | "maxItems" | "minimum" | "maximum" => true,
        "enum" => {
            value.as_array().is_some_and(|values| values.iter().all(|one| one.is_string() || one.is_number()))
        }
        "format" => is_one_of(value, &["date-time", "date", "time"]),
        _ => false,
    },
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

/// Ollama's `format`: llama.cpp converts the schema to a grammar. It ignores unknown keywords, cannot combine members
/// with alternatives, and supports anchored patterns only.
const OLLAMA: Profile = Profile {
    verbatim: false,
    shows_schema: false,
    root_choice: true,
    bounds_numbers: false,
    closes_objects: false,
    requires_all: false,
    types_all: false,
    recursion: true,
    supports: |keyword, value| match keyword {
        "description" | "title" | "const" | "enum" | "minItems" | "maxItems" | "minLength" | "maxLength" => {
            true
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_i64() || value.is_u64(),
        "format" => is_one_of(value, &["date", "time", "date-time", "uuid"]),
        "pattern" => value.as_str().is_some_and(|pattern| pattern.starts_with('^') && pattern.ends_with('$')),
        _ => false,
    },
    limits: Limits::NONE,
    weaker: Dialect::JsonObject,
};

/// JSON Schema as it is written in a module.
pub(crate) const AS_WRITTEN: &Profile = &JSON_SCHEMA;

fn is_one_of(value: &Value, formats: &[&str]) -> bool {
    value.as_str().is_some_and(|format| formats.contains(&format))
}

fn are_scalars(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(|value| !value.is_object() && !value.is_array()))
}

/// Returns whether a pattern has no word boundaries and no counted repetitions, which become large grammars or are
/// refused.
fn is_simple(pattern: &str) -> bool {
    !["\\b", "\\B", "{", "(?"].iter().any(|complex| pattern.contains(complex))
}
