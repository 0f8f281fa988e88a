use cog_json::{Node, Path, Value};
use thiserror::Error;

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
