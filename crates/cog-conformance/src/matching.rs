//! Compares the outcome with the expectation of a case.

use cog_schema::type_name;
use serde_json::{Map, Value};

/// Lists where `found` does not match `expected`.
///
/// An object fits if each member that is expected fits; an array must have as many items, each fitting; anything else must
/// be equal. An object whose keys begin with `$` is a list of tests: `$type`, `$matches` (a string within), `$min`, `$max`,
/// `$length`, `$has` (an item that fits), `$none` (no item fits), `$all` (every item fits), `$first`, `$last`,
/// `$sequence` (items that fit these, in this order, with others between), `$any` (one of these fits), `$not`, `$absent`.
pub(crate) fn differences(found: &Value, expected: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare("", Some(found), expected, &mut differences);
    differences
}

fn compare(path: &str, found: Option<&Value>, expected: &Value, differences: &mut Vec<String>) {
    if let Some(tests) = tests(expected) {
        for (test, argument) in tests {
            if !passes(found, test, argument) {
                differences.push(format!("{path}: {} does not pass {test}: {argument}", shown(found)));
            }
        }
        return;
    }
    match (found, expected) {
        (Some(Value::Object(found)), Value::Object(members)) => {
            for (key, expected) in members {
                compare(&format!("{path}.{key}"), found.get(key), expected, differences);
            }
        }
        (Some(Value::Array(found)), Value::Array(items)) if found.len() == items.len() => {
            for (index, (found, expected)) in found.iter().zip(items).enumerate() {
                compare(&format!("{path}[{index}]"), Some(found), expected, differences);
            }
        }
        (Some(found), expected) if equal(found, expected) => {}
        _ => differences.push(format!("{path}: found {}, expected {expected}", shown(found))),
    }
}

/// Returns the tests in an object, unless it is a plain object.
fn tests(expected: &Value) -> Option<&Map<String, Value>> {
    expected
        .as_object()
        .filter(|members| !members.is_empty() && members.keys().all(|key| key.starts_with('$')))
}

fn passes(found: Option<&Value>, test: &str, argument: &Value) -> bool {
    let Some(found) = found else { return test == "$absent" || test == "$not" };
    let items = found.as_array();
    let arguments = argument.as_array().map_or(&[][..], Vec::as_slice);
    match test {
        "$type" => argument.as_str() == Some(type_name(found)),
        "$matches" => found.as_str().zip(argument.as_str()).is_some_and(|(found, part)| found.contains(part)),
        "$min" => found.as_f64() >= argument.as_f64(),
        "$max" => found.as_f64() <= argument.as_f64(),
        "$length" => length(found) == argument.as_u64(),
        "$has" => items.is_some_and(|items| items.iter().any(|item| fits(item, argument))),
        "$none" => items.is_some_and(|items| !items.iter().any(|item| fits(item, argument))),
        "$all" => items.is_some_and(|items| items.iter().all(|item| fits(item, argument))),
        "$first" => items.and_then(|items| items.first()).is_some_and(|item| fits(item, argument)),
        "$last" => items.and_then(|items| items.last()).is_some_and(|item| fits(item, argument)),
        "$sequence" => items.is_some_and(|items| has_sequence(items, arguments)),
        "$any" => arguments.iter().any(|one| fits(found, one)),
        "$not" => !fits(found, argument),
        _ => false,
    }
}

/// Whether a value matches an expectation.
pub(crate) fn fits(found: &Value, expected: &Value) -> bool {
    differences(found, expected).is_empty()
}

fn has_sequence(items: &[Value], expected: &[Value]) -> bool {
    let mut items = items.iter();
    expected.iter().all(|expected| items.any(|item| fits(item, expected)))
}

fn length(value: &Value) -> Option<u64> {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => return None,
    };
    u64::try_from(length).ok()
}

/// Equality of numbers by value, so that 1 and 1.0 are equal.
fn equal(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => found.to_bits() == expected.to_bits(),
        _ => found == expected,
    }
}

fn shown(found: Option<&Value>) -> String {
    found.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// Returns the strings that are missing.
pub(crate) fn missing<'a>(found: &str, texts: &'a [String]) -> Vec<&'a str> {
    texts.iter().map(String::as_str).filter(|text| !found.contains(text)).collect()
}

/// Merges a change into a value (RFC 7396): objects member by member, null removes, anything else replaces.
pub(crate) fn merge(target: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (key, change) in changes {
        if let Some(members) = target.as_object_mut() {
            if change.is_null() {
                members.remove(key);
            } else {
                merge(members.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
    }
}
