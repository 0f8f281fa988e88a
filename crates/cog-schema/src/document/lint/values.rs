//! Warnings about keywords that no value can satisfy together.

use serde_json::{Map, Value};

use crate::document::lint::list::Warnings;
use crate::wording::quoted;

/// Keywords for a lower and an upper bound.
const RANGES: [[&str; 2]; 4] = [
    ["minimum", "maximum"],
    ["minLength", "maxLength"],
    ["minItems", "maxItems"],
    ["minProperties", "maxProperties"],
];

/// Warns about bounds that contradict each other, about listed values of another type, and about a default that is not
/// listed.
pub(super) fn check(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    for [low, high] in RANGES {
        let bound = |keyword| schema.get(keyword).and_then(Value::as_f64);
        if let (Some(min), Some(max)) = (bound(low), bound(high))
            && min > max
        {
            let message = format!("no value is allowed: {} is over {}", quoted(low), quoted(high));
            warnings.add(&format!("{pointer}/{low}"), message, "Exchange or correct the bounds.".to_owned());
        }
    }
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, value) in listed {
        mistyped(warnings, &format!("{pointer}/enum/{index}"), schema, value);
    }
    if let Some(value) = schema.get("const") {
        mistyped(warnings, &format!("{pointer}/const"), schema, value);
    }
    if let (Some(default), Some(listed)) =
        (schema.get("default"), schema.get("enum").and_then(Value::as_array))
        && !listed.contains(default)
    {
        let message = "the default is not allowed: `enum` does not list it".to_owned();
        warnings.add(&format!("{pointer}/default"), message, "Add it to `enum`, or correct it.".to_owned());
    }
}

fn mistyped(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, value: &Value) {
    let Some(types) = schema.get("type") else { return };
    let fits = match types {
        Value::String(name) => is_of(name, value),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_of(name, value)),
        _ => true,
    };
    if !fits {
        let message = "this value is never allowed: `type` excludes it".to_owned();
        warnings.add(pointer, message, "Correct the value or the type.".to_owned());
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0),
        _ => value.is_number(),
    }
}
