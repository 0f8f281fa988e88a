//! Golden tests: an input beside what is expected of its answer (docs/spec/golden-tests.md).

mod compare;
mod contract;
mod discover;
mod expected;

use std::path::PathBuf;

use cog_json::{Node, ToJson, Value, Writer};

pub use self::{
    contract::check_case,
    discover::{Discovery, discover},
    expected::{Expected, ExpectedError},
};

/// One golden test.
#[derive(Debug, Clone)]
pub struct GoldenCase {
    /// Its name: that of its input file without `.input.json`.
    pub name: String,
    /// The input.
    pub input: Value,
    /// What is expected of the answer.
    pub expected: Expected,
    /// The file the input was read from.
    pub input_file: PathBuf,
    /// The file that says what is expected.
    pub expected_file: PathBuf,
    /// The recording, where there is one: `tests/NAME.cassette/`.
    pub cassette: Option<PathBuf>,
}

/// A difference between what is expected and what was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where, from the envelope: `data.issues[0].risk` (ruling R44).
    pub path: String,
    /// What was asked for there: `equals`, `required`, `min`, `schema`, or a rule of the contract.
    pub rule: String,
    /// What was expected, and what was found.
    pub message: String,
}

impl Mismatch {
    fn new(path: impl Into<String>, rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), rule: rule.into(), message: message.into() }
    }
}

impl ToJson for Mismatch {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("path", &self.path);
            w.field("rule", &self.rule);
            w.field("message", &self.message);
        });
    }
}

/// What a case says about an envelope: nothing where it is as expected.
pub fn compare(expected: &Expected, envelope: Node<'_>) -> Vec<Mismatch> {
    compare::compare(expected, envelope)
}

/// The case whose input is this one: equal as JSON, whatever the order of keys or the form of numbers.
pub fn find_case<'a>(cases: &'a [GoldenCase], input: Node<'_>) -> Option<&'a GoldenCase> {
    let input = input.to_value();
    cases.iter().find(|case| case.input == input)
}

#[cfg(test)]
mod tests;
