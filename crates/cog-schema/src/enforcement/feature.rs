//! The features of schemas that engines treat differently.

use serde_json::Value;

use crate::constraints::Constraint;

/// The sizes from which engines treat a maximum differently, because their grammars repeat a rule so often.
const LARGE: u64 = 1_000;

/// Returns the feature that a constraint depends on: a name of `probes.json`, or the keyword itself if there is no probe.
pub(super) fn feature<'a>(constraint: &Constraint<'a>) -> &'a str {
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

fn pattern(pattern: &str) -> &'static str {
    let has_any = |parts: &[&str]| parts.iter().any(|part| pattern.contains(part));
    if has_any(&["(?=", "(?!", "(?<"]) {
        "pattern_look_around"
    } else if !(pattern.starts_with('^') && pattern.ends_with('$')) {
        "pattern_unanchored"
    } else if has_any(&["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "\\p", "\\P"]) {
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
