use std::{collections::HashSet, fmt::Write as _};

use cog_json::{Node, Object, Path, Segment, ToJson, Value};
use cog_schema::{Contract, Rules, Violation};
use cog_spec::{Format, Manifest, RUNTIME_KEYS, Tier};
use thiserror::Error;

use super::{GoldenCase, Mismatch};
use crate::{Module, Rule};

/// The expected answer, in one of the three forms of docs/spec/golden-tests.md.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Expected {
    /// An exact answer: an envelope if it has `ok`, otherwise the data.
    Exact(Value),
    /// `{"$validate": {field: JSON Schema…}, "$example": envelope}`.
    Schemas {
        /// Each field and its schema.
        fields: Vec<(Path, serde_json::Value)>,
        /// An answer that satisfies it.
        example: Option<Value>,
    },
    /// `{"_validate": {…}}`: each entry an assertion.
    Assertions {
        /// The object under `_validate`.
        assertions: Value,
        /// An answer that satisfies it, under `$example`.
        example: Option<Value>,
    },
}

/// The maximum number of expectations: each is compiled and checked separately.
const MAX_EXPECTATIONS: usize = 1000;

/// Why an expected file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExpectedError {
    /// `$validate` or `_validate` is not an object.
    #[error("`{key}` must be an object with one member per expectation")]
    NoObject {
        /// The key.
        key: &'static str,
    },
    /// A key is not a valid path.
    #[error("`{path}` is not a valid path; write `issues[0].risk` or `meta.confidence`")]
    NoPath {
        /// The key.
        path: String,
    },
    /// There are too many expectations.
    #[error("{found} expectations; the maximum is {MAX_EXPECTATIONS}")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// `$judge` is not a list of sentences.
    #[error("`$judge` must be a list of criteria, such as [\"The rationale names the defect.\"]")]
    NoCriteria,
    /// `required` is not a list of paths.
    #[error("`_validate.required` must be a list of paths")]
    NoList,
}

impl Expected {
    /// Reads an expected file.
    ///
    /// # Errors
    /// If `$validate` or `_validate` is invalid.
    pub fn read(value: &Value) -> Result<Self, ExpectedError> {
        let example = value.get("$example").map(Node::to_value);
        if let Some(schemas) = value.get("$validate") {
            return Ok(Self::Schemas { fields: fields(schemas)?, example });
        }
        if let Some(assertions) = value.get("_validate") {
            check_assertions(assertions)?;
            return Ok(Self::Assertions { assertions: assertions.to_value(), example });
        }
        if value.get(JUDGE).is_some() {
            return Ok(Self::Assertions { assertions: Value::from(serde_json::json!({})), example });
        }
        Ok(Self::Exact(value.clone()))
    }

    /// Returns the answer in the file, which the offline provider returns.
    ///
    /// It is an envelope if it has a boolean `ok`, otherwise the data.
    pub fn answer(&self) -> Option<&Value> {
        match self {
            Self::Exact(answer) => Some(answer),
            Self::Schemas { example, .. } | Self::Assertions { example, .. } => example.as_ref(),
        }
    }
}

/// The key of the criteria that a model judges.
const JUDGE: &str = "$judge";

/// Returns the criteria of an expected file that a model judges.
///
/// # Errors
/// If `$judge` is not a list of sentences, or too long.
pub(super) fn criteria(value: &Value) -> Result<Vec<String>, ExpectedError> {
    let Some(criteria) = value.get(JUDGE) else { return Ok(Vec::new()) };
    check_count(criteria)?;
    let sentences: Option<Vec<String>> = criteria
        .elements()
        .map(|one| Some(one.as_str().filter(|text| !text.trim().is_empty())?.to_owned()))
        .collect();
    sentences.filter(|_| criteria.is_array()).ok_or(ExpectedError::NoCriteria)
}

/// Returns whether an answer is an envelope.
pub(crate) fn is_envelope(answer: Node<'_>) -> bool {
    answer.get("ok").is_some_and(|ok| ok.as_bool().is_some())
}

fn fields(schemas: Node<'_>) -> Result<Vec<(Path, serde_json::Value)>, ExpectedError> {
    if !schemas.is_object() {
        return Err(ExpectedError::NoObject { key: "$validate" });
    }
    check_count(schemas)?;
    schemas.members().map(|(field, schema)| Ok((path(field)?, schema.to_serde()))).collect()
}

fn check_count(expected: Node<'_>) -> Result<(), ExpectedError> {
    if expected.len() > MAX_EXPECTATIONS {
        Err(ExpectedError::TooMany { found: expected.len() })
    } else {
        Ok(())
    }
}

fn check_assertions(assertions: Node<'_>) -> Result<(), ExpectedError> {
    if !assertions.is_object() {
        return Err(ExpectedError::NoObject { key: "_validate" });
    }
    check_count(assertions)?;
    for (key, value) in assertions.members() {
        if key != "required" {
            path(key)?;
        } else if !value.is_array() || value.elements().any(|path| !path.is_string()) {
            return Err(ExpectedError::NoList);
        }
    }
    let required = assertions.get("required").into_iter().flat_map(Node::elements);
    required.filter_map(Node::as_str).try_for_each(|text| path(text).map(drop))
}

/// The operators of `_validate`: the suffix of a key, and its rule.
pub(super) const OPERATORS: [(&str, &str); 6] = [
    ("_min", "min"),
    ("_max", "max"),
    ("_contains", "contains"),
    ("_matches", "matches"),
    ("_similar", "similar"),
    ("_not", "not"),
];

/// Returns the path and the rule of a key of `_validate`; none if it has no operator suffix.
pub(crate) fn operator(key: &str) -> Option<(&str, &'static str)> {
    OPERATORS.iter().find_map(|(suffix, rule)| Some((key.strip_suffix(suffix)?, *rule)))
}

pub(crate) fn path(text: &str) -> Result<Path, ExpectedError> {
    text.parse().map_err(|_| ExpectedError::NoPath { path: text.to_owned() })
}

// Whether the contract allows an expected answer.

/// Checks a case against the contract and the tier without a run (`contract only` in docs/spec/golden-tests.md).
/// Returns each mismatch with its rule.
pub fn check_case(module: &Module, case: &GoldenCase) -> Vec<(Rule, Mismatch)> {
    let is_example = case.name == "example";
    let (input_rule, answer_rule) = if is_example {
        (Rule::ExampleInput, Rule::ExampleOutput)
    } else {
        (Rule::GoldenInput, Rule::GoldenExpected)
    };
    let input = check_input(module, case.input.node()).into_iter().map(mismatch);
    let answer = answer(module, &case.expected).into_iter();
    input.map(|found| (input_rule, found)).chain(answer.map(|found| (answer_rule, found))).collect()
}

/// Checks the input, and its `_context`, which is not part of the input schema.
fn check_input(module: &Module, input: Node<'_>) -> Vec<Violation> {
    let mut violations = module.contract.check_input(input);
    violations.retain(|violation| !violation.path.starts_with("input._context"));
    let context = input.get("_context").into_iter().flat_map(Node::members);
    violations.extend(context.flat_map(|(name, value)| module.contract.check_context(name, value)));
    violations
}

fn answer(module: &Module, expected: &Expected) -> Vec<Mismatch> {
    match expected.answer().map(Value::node) {
        Some(answer) if is_envelope(answer) => {
            let mut found = check_envelope(module, answer);
            if !matches!(expected, Expected::Exact(_)) {
                found.extend(compare(expected, answer));
            }
            found
        }
        answer => {
            let mut found = unusable(module, expected);
            found.extend(answer.map(|data| check_data(module, data)).unwrap_or_default());
            found
        }
    }
}

/// Returns invalid schemas in `$validate` and invalid operands in `_validate`, if there is no envelope to compare.
fn unusable(module: &Module, expected: &Expected) -> Vec<Mismatch> {
    match expected {
        Expected::Schemas { fields, .. } => fields.iter().filter_map(broken_schema).collect(),
        Expected::Assertions { assertions, .. } => {
            let names = property_names(&module.schema);
            // A key that is the name of a field has no operator, whatever its suffix.
            let operators = assertions.members();
            let operators =
                operators.filter(|(key, _)| !names.contains(key.rsplit('.').next().unwrap_or(key)));
            operators.filter_map(|(key, value)| broken_operator(key, value)).collect()
        }
        Expected::Exact(_) => Vec::new(),
    }
}

fn broken_schema((path, schema): &(Path, serde_json::Value)) -> Option<Mismatch> {
    let problem = violations(schema, Value::null().node()).err()?;
    Some(Mismatch::new(format!("$validate.{path}"), "schema", problem))
}

fn broken_operator(key: &str, value: Node<'_>) -> Option<Mismatch> {
    let (_, rule) = operator(key)?;
    Some(Mismatch::new(format!("_validate.{key}"), rule, why_unusable(rule, value)?))
}

/// Returns the names of all fields in a schema.
pub(crate) fn property_names(schema: &serde_json::Value) -> HashSet<&str> {
    let mut names = HashSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(members) => {
                let properties = members.get("properties").and_then(serde_json::Value::as_object);
                names.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
                open.extend(members.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names
}

fn check_envelope(module: &Module, envelope: Node<'_>) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match envelope.get("meta") {
        Some(meta) => {
            found.extend(module.contract.check_meta(meta).into_iter().map(mismatch));
        }
        None => found.push(Mismatch::new("meta", "required", "the envelope has no `meta`")),
    }
    let succeeds = envelope.get("ok").and_then(Node::as_bool) == Some(true);
    if succeeds {
        found.extend(envelope.get("meta").map(|meta| tier_gate(module, meta)).unwrap_or_default());
        match envelope.get("data") {
            Some(data) => found.extend(check_data(module, data)),
            None => found.push(Mismatch::new("data", "required", "a successful envelope needs `data`")),
        }
    } else {
        match envelope.get("error") {
            Some(error) => found.extend(module.contract.check_error(error).into_iter().map(mismatch)),
            None => found.push(Mismatch::new("error", "required", "a failed envelope needs `error`")),
        }
    }
    found
}

/// Checks what the tier requires of a successful answer (rulings R2, R3).
fn tier_gate(module: &Module, meta: Node<'_>) -> Vec<Mismatch> {
    let Some(tier) = module.manifest.tier else { return Vec::new() };
    let mut found = Vec::new();
    let confidence = meta.get("confidence").and_then(Node::as_f64);
    if let Some((min, confidence)) = tier.min_confidence().zip(confidence)
        && confidence < min
    {
        let message = format!("tier {tier} requires at least {min}, found {confidence}");
        found.push(Mismatch::new("meta.confidence", "tier", message));
    }
    let risk = meta.get("risk");
    let is_low = risk.and_then(Node::as_str).is_some_and(|risk| matches!(risk, "none" | "low"));
    if tier == Tier::Exec && !is_low {
        let message = format!("tier exec requires `none` or `low`, found {}", risk.to_json());
        found.push(Mismatch::new("meta.risk", "tier", message));
    }
    found
}

fn check_data(module: &Module, data: Node<'_>) -> Vec<Mismatch> {
    module.contract.check_data(data).violations.into_iter().map(mismatch).collect()
}

fn mismatch(violation: Violation) -> Mismatch {
    Mismatch::new(violation.path, violation.rule, violation.message)
}

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
fn why_unusable(rule: &str, operand: Node<'_>) -> Option<String> {
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
    let wrapped: Object = [("value".to_owned(), node.to_value())].into_iter().collect();
    Ok(contract
        .check_input(wrapped.to_value().node())
        .into_iter()
        .map(|violation| violation.message)
        .collect())
}
