//! Warnings about keywords that no value can satisfy together.

use cog_json::Value as Tree;
use serde_json::{Map, Value};

use crate::document::lint::list::Warnings;
use crate::engine::repeated;
use crate::wording::quoted;

/// Keywords for a lower and an upper bound.
const RANGES: [[&str; 2]; 4] = [
    ["minimum", "maximum"],
    ["minLength", "maxLength"],
    ["minItems", "maxItems"],
    ["minProperties", "maxProperties"],
];

/// Warns about bounds that contradict each other, about values of another type or repeated ones, and about a constant or a
/// default that is not listed.
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
    let listed = schema.get("enum").filter(|listed| listed.is_array()).map(Tree::from);
    check_list(warnings, &format!("{pointer}/enum"), schema, listed.as_ref());
    for (keyword, name) in [("const", "the constant"), ("default", "the default")] {
        let Some(value) = schema.get(keyword) else { continue };
        let pointer = format!("{pointer}/{keyword}");
        let tree = Tree::from(value);
        if listed.as_ref().is_some_and(|listed| listed.elements().all(|other| other != tree.node())) {
            let message = format!("{name} is not allowed: `enum` does not list it");
            warnings.add(&pointer, message, "Add it to `enum`, or correct it.".to_owned());
        } else {
            mistyped(warnings, &pointer, schema, value);
        }
    }
}

/// Warns about listed values of another type, and repeated ones.
fn check_list(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, listed: Option<&Tree>) {
    let repeated = listed.map(|listed| repeated(listed.node())).unwrap_or_default();
    let values = schema.get("enum").and_then(Value::as_array);
    for (index, value) in values.into_iter().flatten().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if repeated.binary_search(&index).is_err() {
            mistyped(warnings, &pointer, schema, value);
        } else {
            warnings.add(
                &pointer,
                "this value is listed before".to_owned(),
                "Remove or correct it.".to_owned(),
            );
        }
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
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        _ => value.is_number(),
    }
}
