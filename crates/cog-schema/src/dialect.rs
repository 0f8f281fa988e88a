//! What each vendor's structured output can be reported, one file for each dialect.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod json_schema;
pub(crate) mod ollama;
pub(crate) mod openai_strict;

use cog_spec::Dialect;
use serde_json::Value;

/// How a dialect differs from JSON Schema.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Everything is reported as it is written; nothing else here counts.
    pub(crate) verbatim: bool,
    /// Every object has exactly the members it names.
    pub(crate) closes_objects: bool,
    /// Every member is required; what was optional becomes nullable.
    pub(crate) requires_all: bool,
    /// Every schema has a type.
    pub(crate) types_all: bool,
    /// A schema may contain itself.
    pub(crate) recursion: bool,
    /// Whether a keyword, besides those of structure, is taken with this value.
    pub(crate) takes: fn(keyword: &str, value: &Value) -> bool,
    /// How large a schema may be.
    pub(crate) limits: Limits,
    /// The dialect for contracts that are beyond this one.
    pub(crate) weaker: Dialect,
}

/// How large a projected schema may be.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Members of all objects.
    pub(crate) members: usize,
    /// Members that are not required.
    pub(crate) optional_members: usize,
    /// Members that may be of several types.
    pub(crate) union_members: usize,
    /// Objects inside each other.
    pub(crate) depth: usize,
    /// Values of all enums.
    pub(crate) enum_values: usize,
    /// Characters of all names and enum values.
    pub(crate) text: usize,
}

impl Limits {
    /// No limit that anybody documents.
    pub(crate) const NONE: Limits = Limits {
        members: usize::MAX,
        optional_members: usize::MAX,
        union_members: usize::MAX,
        depth: usize::MAX,
        enum_values: usize::MAX,
        text: usize::MAX,
    };
}

/// Whether a `format` is one of these.
fn is_format(value: &Value, formats: &[&str]) -> bool {
    value.as_str().is_some_and(|format| formats.contains(&format))
}

/// Whether every value of an `enum` is a scalar.
fn are_scalars(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(|value| !value.is_object() && !value.is_array()))
}
