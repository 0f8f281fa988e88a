//! Labelled runs: one JSON object a line.

use std::collections::HashMap;

use cog_batch::{ReadError, RowErrorKind, RowLocation, Source};
use cog_json::{Node, Value};
use cog_schema::Contract;
use cog_spec::{Calibration, Code, ErrorBody};
use cog_trust::Observation;

/// The maximum number of runs.
pub(super) const MAX_RUNS: usize = 1_000_000;

/// The lines that are reported as invalid, and then some: after so many, the rest is not read.
const MAX_INVALID: usize = 1_000;

/// What a line must be.
const FORM: &str =
    "Write one object per line, such as {\"case\": \"t1\", \"confidence\": 0.9, \"right\": true}.";

/// The runs of a file.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) runs: Vec<Observation>,
    pub(super) errors: Vec<LineError>,
}

/// An invalid line.
#[derive(Debug)]
pub(super) struct LineError {
    /// The file and the line: `runs.jsonl:3`.
    pub(super) location: String,
    pub(super) body: ErrorBody,
}

/// Reads the runs. Lines that are invalid are collected.
///
/// # Errors
/// E1006 if the file cannot be read, E1005 if it has too many lines.
pub(super) async fn labels(
    source: &Source,
    contract: &Contract,
    kinds: &[&str],
) -> Result<Labels, ErrorBody> {
    read(source, contract, RowForm { kinds, has_truth: true }).await
}

/// Reads runs whose truth need not be known. Lines that are invalid are collected.
///
/// # Errors
/// As [`labels`].
pub(super) async fn unlabelled(
    source: &Source,
    contract: &Contract,
    kinds: &[&str],
) -> Result<Labels, ErrorBody> {
    read(source, contract, RowForm { kinds, has_truth: false }).await
}

/// What is read of a line.
#[derive(Clone, Copy)]
pub(super) struct RowForm<'a> {
    /// The numbers that are read: the confidence, and kinds of evidence.
    pub(super) kinds: &'a [&'a str],
    /// Whether `case` and `right` are required.
    pub(super) has_truth: bool,
}

async fn read(source: &Source, contract: &Contract, form: RowForm<'_>) -> Result<Labels, ErrorBody> {
    let mut rows = source.open(contract).map_err(|error| unreadable(&error))?;
    let mut labels = Labels::default();
    // The name of a case is kept once, however often it is repeated.
    let mut cases: HashMap<String, usize> = HashMap::new();
    while let Some(group) = rows.next().await.map_err(|error| unreadable(&error))? {
        for row in group {
            let run = match row.input.get() {
                Ok(row) => run(row, form, &mut cases),
                Err(error) if matches!(error.kind, RowErrorKind::NotAnInput { .. }) => Err(not_an_object()),
                Err(error) => {
                    let mut body = error.to_body(&source.name());
                    body.message = error.kind.to_string();
                    Err(body)
                }
            };
            match run {
                Ok(run) => labels.runs.push(run),
                Err(body) => {
                    labels.errors.push(LineError { location: location(source, row.input.location()), body });
                }
            }
        }
        if labels.runs.len() > MAX_RUNS {
            return Err(too_many(&source.name()));
        }
        if labels.errors.len() >= MAX_INVALID {
            break;
        }
    }
    Ok(labels)
}

fn location(source: &Source, location: RowLocation) -> String {
    match location {
        RowLocation::Line(line) => format!("{}:{line}", source.name()),
        other => format!("{}, {other}", source.name()),
    }
}

/// Reads a run.
///
/// # Errors
/// E1002 for a missing member, E1003 for one of another type, E1001 for a confidence that is not from 0 to 1.
pub(super) fn run(
    row: &Value,
    form: RowForm<'_>,
    cases: &mut HashMap<String, usize>,
) -> Result<Observation, ErrorBody> {
    if !row.is_object() {
        return Err(not_an_object());
    }
    let number = cases.len();
    let case = match form.has_truth {
        true => case(row)?,
        false => number.to_string(), // each run counts
    };
    let evidence: Vec<f64> = form.kinds.iter().map(|kind| score(row, kind)).collect::<Result<_, _>>()?;
    let right = match form.has_truth {
        true => required(row, "right")?.as_bool().ok_or_else(|| wrong_type("right", "true or false"))?,
        false => false,
    };
    if let Some(evidence) = row.get("evidence")
        && !evidence.is_object()
    {
        return Err(wrong_type("evidence", "an object"));
    }
    let case = *cases.entry(case).or_insert(number);
    let is_outside = |value: &f64| !(0.0..=1.0).contains(value);
    let outside = form.kinds.iter().zip(&evidence).find(|(_, value)| is_outside(value));
    let message = outside.map(|(kind, value)| match *kind {
        Calibration::STATED => format!("the confidence must be from 0 to 1, and is {value}"),
        kind => format!("`evidence.{kind}` must be from 0 to 1, and is {value}"),
    });
    Observation::new(case, evidence, right)
        .ok_or_else(|| invalid(Code::InvalidInput, message.unwrap_or_default()))
}

/// Returns the name of the case; a number is its text.
fn case(row: &Value) -> Result<String, ErrorBody> {
    let case = required(row, "case")?;
    let name = match (case.as_str(), case.as_number()) {
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(_)) => Some(case.to_value().to_string()),
        (None, None) => None,
    };
    name.filter(|name| !name.is_empty()).ok_or_else(|| wrong_type("case", "a string or a number"))
}

/// Returns the number that the map reads: the confidence, or a kind of evidence.
fn score(row: &Value, kind: &str) -> Result<f64, ErrorBody> {
    if kind == Calibration::STATED {
        return confidence(row);
    }
    let of_envelope =
        row.get("envelope").and_then(|envelope| envelope.get("meta")).and_then(|meta| meta.get("evidence"));
    let evidence = row.get("evidence").or(of_envelope);
    evidence
        .and_then(|evidence| evidence.get(kind))
        .and_then(|found| found.as_f64().or_else(|| found.get("value").and_then(Node::as_f64)))
        .ok_or_else(|| invalid(Code::MissingRequiredField, format!("`evidence.{kind}` is missing")))
}

/// Returns the confidence of a run, otherwise the one in its envelope, as it was before a calibration.
fn confidence(row: &Value) -> Result<f64, ErrorBody> {
    let measured = row.get("evidence").and_then(|evidence| evidence.get(Calibration::STATED));
    if let Some(confidence) = measured.or_else(|| row.get("confidence")) {
        return confidence.as_f64().ok_or_else(|| wrong_type("confidence", "a number from 0 to 1"));
    }
    let envelope = required(row, "envelope").map_err(|_| {
        invalid(Code::MissingRequiredField, "`confidence` is missing, and so is `envelope`".to_owned())
    })?;
    let meta = envelope.get("meta");
    let before =
        meta.and_then(|meta| meta.get("evidence")).and_then(|evidence| evidence.get(Calibration::STATED));
    let confidence = before.or_else(|| meta.and_then(|meta| meta.get("confidence")));
    match confidence.filter(|confidence| !confidence.is_null()) {
        Some(confidence) => {
            confidence.as_f64().ok_or_else(|| wrong_type("envelope.meta.confidence", "a number from 0 to 1"))
        }
        None => Err(invalid(
            Code::MissingRequiredField,
            "`envelope.meta.confidence` is missing: the run states no confidence".to_owned(),
        )),
    }
}

fn required<'a>(row: &'a Value, key: &str) -> Result<Node<'a>, ErrorBody> {
    row.get(key).ok_or_else(|| invalid(Code::MissingRequiredField, format!("`{key}` is missing")))
}

fn wrong_type(key: &str, expected: &str) -> ErrorBody {
    invalid(Code::TypeMismatch, format!("`{key}` must be {expected}"))
}

fn not_an_object() -> ErrorBody {
    invalid(Code::TypeMismatch, "a run must be a JSON object".to_owned())
}

fn invalid(code: Code, message: String) -> ErrorBody {
    ErrorBody::new(code, message).suggest(FORM)
}

fn unreadable(error: &ReadError) -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, error.to_string()).suggest(error.suggestion())
}

fn too_many(name: &str) -> ErrorBody {
    ErrorBody::new(Code::InputTooLarge, format!("{name} has more than {MAX_RUNS} runs"))
        .suggest("Take a random sample of the cases: 10,000 are more than enough.")
}

/// Creates the error of a file without runs.
pub(super) fn no_runs(name: &str) -> ErrorBody {
    invalid(Code::InvalidInput, format!("{name} has no runs"))
}
