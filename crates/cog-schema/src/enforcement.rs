//! What the grammar of an engine enforces of a schema while a model writes.
//!
//! Engines accept keywords that their grammars ignore. `cargo xtask probe` measures them: it requests answers for each
//! schema of `probes.json`, and counts those that violate it.

mod llamacpp;

use serde_json::Value;

use crate::{
    constraints::{Constraint, constraints},
    project::{Loss, LossKind},
};

/// The measured behaviour of an engine. It covers the engine's own structured output, whatever the model.
#[derive(Debug)]
pub struct Enforcement {
    /// The engine's name, as its server reports it: `llamacpp`.
    pub engine: &'static str,
    /// The version that was measured.
    pub version: &'static str,
    /// The day of the measurement, `2026-11-22`.
    pub date: &'static str,
    features: &'static [Measured],
}

/// The answers of an engine for a schema that depends on one feature.
#[derive(Debug)]
struct Measured {
    feature: &'static str,
    /// Answers that conform to the schema.
    valid: u32,
    /// Answers that violate it.
    invalid: u32,
    /// The engine refuses the schema.
    is_refused: bool,
}

impl Enforcement {
    /// Returns the measurements of an engine, by the name that a provider's row has for it.
    pub fn by_engine(name: &str) -> Option<&'static Enforcement> {
        [&llamacpp::LLAMACPP].into_iter().find(|measured| measured.engine == name)
    }

    /// Returns the keywords of a schema that the engine does not enforce. The pointers start at this schema.
    pub fn losses(&self, schema: &Value) -> Vec<Loss> {
        let constraints = constraints(schema, "");
        let losses = constraints.iter().filter_map(|constraint| {
            Some(Loss {
                reason: self.reason(constraint)?,
                pointer: constraint.pointer.clone(),
                keyword: constraint.keyword.to_owned(),
                kind: LossKind::NotEnforced,
            })
        });
        losses.collect()
    }

    /// Returns whether the engine enforces a constraint.
    pub(crate) fn enforces(&self, constraint: &Constraint<'_>) -> bool {
        self.reason(constraint).is_none()
    }

    /// Returns why a constraint is not enforced.
    fn reason(&self, constraint: &Constraint<'_>) -> Option<String> {
        let engine = self.engine;
        let feature = feature(constraint);
        let Some(measured) = self.features.iter().find(|measured| measured.feature == feature) else {
            return Some(format!("whether {engine} enforces it was not measured"));
        };
        let Measured { valid, invalid, .. } = *measured;
        let answers = valid + invalid;
        if measured.is_refused {
            return Some(format!("{engine} refuses it"));
        }
        // A few violations come from bytes that are not UTF-8, not from the grammar.
        (invalid * 10 > answers || answers == 0)
            .then(|| format!("{engine} does not enforce it: {invalid} of {answers} answers violated it"))
    }
}

// The features of schemas that engines treat differently.

/// The sizes from which engines treat a maximum differently, because their grammars repeat a rule so often.
const LARGE: u64 = 1_000;

/// Returns the feature that a constraint depends on: a name of `probes.json`, or the keyword itself if there is no probe.
fn feature<'a>(constraint: &Constraint<'a>) -> &'a str {
    let Constraint { keyword, value, schema, .. } = *constraint;
    let is_large = value.as_u64().is_some_and(|size| size > LARGE);
    match keyword {
        "$ref" => "ref",
        "additionalProperties" if value.is_object() => "map",
        "additionalProperties" => "closed_object",
        "allOf" => "all_of",
        "anyOf" => "any_of",
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => bounds(schema),
        "format" => format(value),
        "items" if value.is_array() => "tuple",
        "maxItems" if is_large => "large_max_items",
        "maxItems" => "max_items",
        "maxLength" if is_large => "large_max_length",
        "maxLength" => "max_length",
        "maxProperties" => "max_properties",
        "minItems" => "min_items",
        "minLength" => "min_length",
        "minProperties" => "min_properties",
        "multipleOf" => "multiple_of",
        "oneOf" => one_of(value),
        "pattern" => pattern(value.as_str().unwrap_or_default()),
        "patternProperties" => "pattern_properties",
        "propertyNames" => "property_names",
        "uniqueItems" => "unique_items",
        _ => keyword,
    }
}

fn bounds(schema: &Value) -> &'static str {
    let is_integer = schema.get("type").is_some_and(|kind| kind == "integer");
    if is_integer { "integer_bounds" } else { "number_bounds" }
}

/// Grammars try the branches in turn. Whether exactly one matches only matters if several can.
fn one_of(branches: &Value) -> &'static str {
    let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
    let types: Option<Vec<&str>> = branches.iter().map(|branch| branch.get("type")?.as_str()).collect();
    let are_disjoint = types.is_some_and(|mut types| {
        types.sort_unstable();
        let count = types.len();
        types.dedup();
        types.len() == count && !(types.contains(&"integer") && types.contains(&"number"))
    });
    if are_disjoint { "one_of" } else { "one_of_overlap" }
}

/// The escapes of patterns for classes and word boundaries.
const ESCAPES: [&str; 10] = ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "\\p", "\\P"];

fn pattern(pattern: &str) -> &'static str {
    if ["(?=", "(?!", "(?<"].iter().any(|start| pattern.contains(start)) {
        "pattern_look_around"
    } else if !(pattern.starts_with('^') && pattern.ends_with('$')) {
        "pattern_unanchored"
    } else if ESCAPES.iter().any(|escape| pattern.contains(escape)) {
        "pattern_escape"
    } else {
        "pattern"
    }
}

fn format(value: &Value) -> &'static str {
    match value.as_str().unwrap_or_default() {
        "date" => "format_date",
        "time" => "format_time",
        "date-time" => "format_date-time",
        "uuid" => "format_uuid",
        "email" => "format_email",
        "uri" => "format_uri",
        "hostname" => "format_hostname",
        "ipv4" => "format_ipv4",
        "ipv6" => "format_ipv6",
        _ => "format",
    }
}

#[cfg(test)]
mod tests;
