//! Golden tests: an input and the expected answer (docs/spec/golden-tests.md).

mod compare;
mod contract;
mod discover;
mod expected;
mod legacy;
mod paths;

use std::path::PathBuf;

use cog_json::{Node, Value};
use serde::Serialize;

pub use self::{
    contract::check_case,
    discover::{Discovery, discover},
    expected::{Expected, ExpectedError},
};
pub(crate) use self::{
    contract::property_names,
    expected::{is_envelope, operator, path},
    paths::unknown_paths,
};

/// One golden test.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    /// Its name: the name of its input file without `.input.json`.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The expected answer.
    pub expected: Expected,
    /// What the answer must satisfy in addition, as sentences that a model judges (`$judge`).
    pub criteria: Vec<String>,
    /// The input file.
    pub input_file: PathBuf,
    /// The expected file.
    pub expected_file: PathBuf,
    /// The recording, if there is one: `tests/NAME.cassette/`.
    pub cassette: Option<PathBuf>,
}

/// A difference between the expected and the actual answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Its path in the envelope: `data.issues[0].risk` (ruling R44).
    pub path: String,
    /// The expectation: `equals`, `required`, `min`, `schema`, or a rule of the contract.
    pub rule: String,
    /// What was expected and what was found.
    pub message: String,
}

impl Mismatch {
    fn new(path: impl Into<String>, rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule: rule.into(), message: message.into() }
    }
}

/// Compares an envelope with the expected answer. Returns the differences. The error may have its code as the runtime or as
/// the model wrote it (ruling R31).
pub fn compare(expected: &Expected, envelope: Node<'_>) -> Vec<Mismatch> {
    let found = compare::compare(expected, envelope);
    let written = if found.is_empty() { None } else { legacy::as_written(envelope) };
    let other = written.map(|written| compare::compare(expected, written.node()));
    other.filter(|other| other.len() < found.len()).unwrap_or(found)
}

/// Returns the case with this input, compared as JSON: order of keys and form of numbers do not matter.
pub fn find_case<'a>(cases: &'a [GoldenCase], input: Node<'_>) -> Option<&'a GoldenCase> {
    let input = input.to_value();
    cases.iter().find(|case| case.input == input)
}

#[cfg(test)]
mod tests;
