use std::collections::HashSet;

use cog_json::{Node, Path, ToJson, Value};
use cog_schema::Violation;
use cog_spec::Tier;
use thiserror::Error;

use super::{
    GoldenCase, Mismatch,
    compare::{compare, violations, why_unusable},
};
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
