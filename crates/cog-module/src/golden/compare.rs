use std::fmt::Write as _;

use cog_json::{Node, Path, Segment, Value};
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest, RUNTIME_KEYS};

use super::{
    Expected, Mismatch,
    expected::{is_envelope, operator, path},
};

/// The maximum number of differences that are reported.
const MAX_MISMATCHES: usize = 20;

pub(super) fn compare(expected: &Expected, envelope: Node<'_>) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match expected {
        Expected::Exact(answer) if is_envelope(answer.node()) => {
            same_envelope(answer.node(), envelope, &mut found);
        }
        Expected::Exact(data) => match envelope.get("data") {
            Some(actual) => same(data.node(), actual, "data", &mut found),
            None => found.push(Mismatch::new("data", "required", without_data(envelope))),
        },
        Expected::Schemas { fields, .. } => {
            found.extend(fields.iter().flat_map(|(path, schema)| check_schema(path, schema, envelope)));
        }
        Expected::Assertions { assertions, .. } => {
            found.extend(assertions.members().flat_map(|(key, value)| check_assertion(key, value, envelope)));
        }
    }
    found.truncate(MAX_MISMATCHES);
    found
}

/// Compares all expected members; in `meta`, not those that the runtime adds (ruling R27).
fn same_envelope(expected: Node<'_>, envelope: Node<'_>, found: &mut Vec<Mismatch>) {
    for (key, value) in expected.members() {
        match envelope.get(key) {
            None => found.push(Mismatch::new(key, "required", missing(value))),
            Some(actual) if key == "meta" => {
                for (key, value) in value.members().filter(|(key, _)| !RUNTIME_KEYS.contains(key)) {
                    same_member(key, value, actual, "meta", found);
                }
            }
            Some(actual) => same(value, actual, key, found),
        }
    }
}

fn same(expected: Node<'_>, actual: Node<'_>, at: &str, found: &mut Vec<Mismatch>) {
    if found.len() >= MAX_MISMATCHES {
        return;
    }
    if expected.is_object() && actual.is_object() {
        for (key, value) in expected.members() {
            same_member(key, value, actual, at, found);
        }
        for (key, value) in actual.members().filter(|(key, _)| expected.get(key).is_none()) {
            found.push(Mismatch::new(member(at, key), "equals", format!("unexpected value {}", show(value))));
        }
    } else if expected.is_array() && actual.is_array() && expected.len() == actual.len() {
        for (index, (value, actual)) in expected.elements().zip(actual.elements()).enumerate() {
            same(value, actual, &format!("{at}[{index}]"), found);
        }
    } else if expected.to_value() != actual.to_value() {
        found.push(Mismatch::new(at, "equals", expected_found(expected, actual)));
    }
}

fn same_member(key: &str, value: Node<'_>, actual: Node<'_>, at: &str, found: &mut Vec<Mismatch>) {
    match actual.get(key) {
        Some(actual) => same(value, actual, &member(at, key), found),
        None => found.push(Mismatch::new(member(at, key), "required", missing(value))),
    }
}

/// Compares a field with its schema in `$validate`.
fn check_schema(path: &Path, schema: &serde_json::Value, envelope: Node<'_>) -> Vec<Mismatch> {
    let (at, node) = resolve(path, envelope);
    let Some(node) = node else {
        return vec![Mismatch::new(at, "required", "expected a value, but it is missing")];
    };
    match violations(schema, node) {
        Ok(messages) => messages.into_iter().map(|message| Mismatch::new(&at, "schema", message)).collect(),
        Err(problem) => vec![Mismatch::new(at, "schema", format!("the schema is invalid: {problem}"))],
    }
}

/// Compares an entry of `_validate`.
fn check_assertion(key: &str, value: Node<'_>, envelope: Node<'_>) -> Vec<Mismatch> {
    if key == "required" {
        return value
            .elements()
            .filter_map(Node::as_str)
            .filter_map(|path| required(path, envelope))
            .collect();
    }
    // A field of the answer may end like an operator: `size_max` is then its value, not a maximum of `size`.
    let is_field = path(key).is_ok_and(|path| resolve(&path, envelope).1.is_some());
    let (field, rule) = operator(key).filter(|_| !is_field).unwrap_or((key, "equals"));
    let Ok(path) = path(field) else { return vec![Mismatch::new(field, rule, "not a valid path")] };
    let (at, node) = resolve(&path, envelope);
    let Some(node) = node else {
        return if rule == "not" { Vec::new() } else { vec![Mismatch::new(at, rule, missing(value))] };
    };
    assertion(rule, value, node).map(|message| Mismatch::new(at, rule, message)).into_iter().collect()
}

fn required(text: &str, envelope: Node<'_>) -> Option<Mismatch> {
    let Ok(path) = path(text) else { return Some(Mismatch::new(text, "required", "not a valid path")) };
    let (at, node) = resolve(&path, envelope);
    node.is_none().then(|| Mismatch::new(at, "required", "expected a value, but it is missing"))
}

/// Returns what is wrong with a value according to an operator.
fn assertion(rule: &str, expected: Node<'_>, found: Node<'_>) -> Option<String> {
    // A value without an amount satisfies neither `_min` nor `_max`.
    let amounts = amount(found).zip(expected.as_f64());
    let passes = match rule {
        "min" | "max" if expected.as_f64().is_none() => return why_unusable(rule, expected),
        "min" => amounts.is_some_and(|(found, min)| found >= min),
        "max" => amounts.is_some_and(|(found, max)| found <= max),
        "contains" => contains(found, expected),
        "matches" => match matches(found, expected) {
            Ok(passes) => passes,
            Err(unusable) => return Some(unusable),
        },
        "similar" => match similarity(found, expected) {
            Ok(passes) => passes,
            Err(unusable) => return Some(unusable),
        },
        "not" => found.to_value() != expected.to_value(),
        _ => found.to_value() == expected.to_value(),
    };
    let expectation = match rule {
        "min" => "at least ",
        "max" => "at most ",
        "contains" => "a value containing ",
        "matches" => "a string matching ",
        "similar" => "a string similar to ",
        "not" => "a value other than ",
        _ => "",
    };
    (!passes).then(|| format!("expected {expectation}{}, found {}", show(expected), show(found)))
}

/// Returns what `_min` and `_max` compare: a number, or a length.
fn amount(node: Node<'_>) -> Option<f64> {
    match node.as_str() {
        Some(text) => u32::try_from(text.chars().count()).ok().map(f64::from),
        None if node.is_array() || node.is_object() => u32::try_from(node.len()).ok().map(f64::from),
        None => node.as_f64(),
    }
}

fn contains(found: Node<'_>, expected: Node<'_>) -> bool {
    match (found.as_str(), expected.as_str()) {
        (Some(text), Some(part)) => text.contains(part),
        _ => found.elements().any(|item| item.to_value() == expected.to_value()),
    }
}

/// Returns whether a value is a string that matches a pattern, or why the pattern is unusable.
fn matches(found: Node<'_>, pattern: Node<'_>) -> Result<bool, String> {
    let Some(text) = pattern.as_str() else {
        return Err(format!("{} is not a regular expression: expected a string", show(pattern)));
    };
    // As a schema, because its patterns take linear time: a golden test may come from an untrusted module.
    let schema = serde_json::json!({ "type": "string", "pattern": text });
    match violations(&schema, found) {
        Ok(messages) => Ok(messages.is_empty()),
        Err(_) => Err(format!(
            "{} is not a valid regular expression; look-around and backreferences are not supported",
            show(pattern)
        )),
    }
}

/// The minimum similarity, if an operand names none.
const MIN_SIMILARITY: f64 = 0.8;

/// Returns whether a value is a string that is similar to another, or why the operand is unusable.
fn similarity(found: Node<'_>, operand: Node<'_>) -> Result<bool, String> {
    let text = operand.as_str().or_else(|| operand.get("text")?.as_str());
    let min =
        operand.get("min").map_or(Some(MIN_SIMILARITY), Node::as_f64).filter(|min| (0.0..=1.0).contains(min));
    let Some((text, min)) = text.zip(min) else {
        return Err(format!(
            "`_similar` requires a string, or {{\"text\": string, \"min\": number from 0 to 1}}, found {}",
            show(operand)
        ));
    };
    let text = text.to_lowercase();
    let similarity = found.as_str().map(|found| strsim::sorensen_dice(&found.to_lowercase(), &text));
    Ok(similarity.is_some_and(|similarity| similarity >= min))
}

/// Returns why an operator cannot use its operand.
pub(super) fn why_unusable(rule: &str, operand: Node<'_>) -> Option<String> {
    match rule {
        "min" | "max" if operand.as_f64().is_none() => {
            Some(format!("`_{rule}` requires a number, found {}", show(operand)))
        }
        "matches" => matches(Value::null().node(), operand).err(),
        "similar" => similarity(Value::null().node(), operand).err(),
        _ => None,
    }
}

/// Returns the value of a path, and the path in the envelope: `ok`, `meta` and `error` start at the envelope, all
/// others at `data`.
fn resolve<'a>(path: &Path, envelope: Node<'a>) -> (String, Option<Node<'a>>) {
    let data = envelope.get("data");
    let starts_at_envelope = match path.first() {
        Some(Segment::Key("ok" | "meta" | "error" | "partial_data")) => true,
        // Data that have a member `data` themselves: the path leads to that one.
        Some(Segment::Key("data")) => data.is_none_or(|data| data.get("data").is_none()),
        _ => false,
    };
    let (root, at) =
        if starts_at_envelope { (Some(envelope), path.to_string()) } else { (data, in_data(path)) };
    let value = root.and_then(|root| {
        path.segments().try_fold(root, |node, segment| match segment {
            Segment::Key(key) => node.get(key),
            Segment::Index(index) => node.at(index),
        })
    });
    (at, value)
}

fn in_data(path: &Path) -> String {
    let mut full = Path::root();
    full.push_key("data");
    for segment in path.segments() {
        match segment {
            Segment::Key(key) => full.push_key(key),
            Segment::Index(index) => full.push_index(index),
        }
    }
    full.to_string()
}

fn member(at: &str, key: &str) -> String {
    let mut path = Path::root();
    path.push_key(key);
    let key = path.to_string();
    if key.starts_with('[') { format!("{at}{key}") } else { format!("{at}.{key}") }
}

fn missing(expected: Node<'_>) -> String {
    format!("expected {}, but it is missing", show(expected))
}

fn expected_found(expected: Node<'_>, actual: Node<'_>) -> String {
    format!("expected {}, found {}", show(expected), show(actual))
}

fn without_data(envelope: Node<'_>) -> String {
    let code = envelope.get("error").and_then(|error| error.get("code")).and_then(Node::as_str);
    code.map_or_else(
        || "the answer has no data".to_owned(),
        |code| format!("the answer has no data: it failed with {code}"),
    )
}

/// Returns a value for a message, shortened.
fn show(node: Node<'_>) -> String {
    let mut text = String::new();
    node.write(&mut text);
    if text.len() > 80 {
        let length = text.len();
        text.truncate(text.floor_char_boundary(60));
        let _ = write!(text, "… ({length} bytes)");
    }
    text
}

// Standalone schemas.

/// Returns the violations of a value against a standalone schema.
///
/// # Errors
/// What is wrong with the schema.
pub(crate) fn violations(schema: &serde_json::Value, node: Node<'_>) -> Result<Vec<String>, String> {
    // As a field of an input, so that the checker of contracts decides, with its limits and its messages.
    let document = serde_json::json!({ "input": { "properties": { "value": schema } } });
    let rules = Rules::from(&Manifest::with_defaults("check", Format::V22, None));
    let contract = Contract::compile(&document, &rules).map_err(|problems| {
        problems.into_iter().next().map_or_else(String::new, |problem| problem.message)
    })?;
    let wrapped = Value::from(serde_json::json!({ "value": node.to_serde() }));
    Ok(contract.check_input(wrapped.node()).into_iter().map(|violation| violation.message).collect())
}
