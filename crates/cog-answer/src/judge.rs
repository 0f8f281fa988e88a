//! A whole reply to an answer that stands, or to why there is none.

mod check;
mod gate;
mod model_error;
mod open;
pub(crate) mod risk;

use cog_json::{Path, Value};
use cog_schema::Violation;
use cog_spec::{Code, ErrorBody, Meta, Repair, Secret, Warning};

use crate::{AnswerRules, error, partial, repair::Ledger, shape::Shape};

/// A reply that was read to its end.
#[derive(Debug)]
pub(crate) struct Reading {
    /// All of it.
    pub(crate) value: Value,
    pub(crate) shape: Shape,
    /// What the parser let pass.
    pub(crate) ledger: Ledger,
}

/// An answer that stands.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) meta: Meta,
    pub(crate) data: Value,
    /// Places of the data that are not as they arrived.
    pub(crate) changed: Vec<Path>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) warnings: Vec<Warning>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ErrorBody,
    /// The meta of an error that the model answered; none for an error that the runtime found (ruling R32).
    pub(crate) meta: Option<Meta>,
    pub(crate) partial_data: Option<Value>,
    pub(crate) repairs: Vec<Repair>,
    /// What else was found; a caller of the sync form reads it beside the error.
    pub(crate) warnings: Vec<Warning>,
}

impl Failure {
    /// Whether the answer broke its contract or is no JSON, so that another attempt can help.
    pub(crate) fn is_of_contract(&self) -> bool {
        let codes = [
            Code::ParseError,
            Code::OutputSchemaViolation,
            Code::MissingRationale,
            Code::OverflowLimit,
            Code::InvalidEnum,
        ];
        self.meta.is_none() && codes.iter().any(|code| self.error.code == (*code).into())
    }

    /// The same without these secrets in what the runtime says. An error with a meta is the model's own answer.
    pub(crate) fn without(self, secrets: &[Secret]) -> Self {
        let of_model = self.meta.is_some();
        let error = secrets.iter().filter(|_| !of_model).fold(self.error, ErrorBody::without);
        Self { error, ..self }
    }

    /// An error that the runtime found.
    pub(crate) fn new(error: ErrorBody) -> Self {
        Self { error, meta: None, partial_data: None, repairs: Vec::new(), warnings: Vec::new() }
    }
}

/// Reply → repaired → checked → admitted.
pub(crate) fn judge(rules: &AnswerRules, reading: Reading) -> Result<Success, Box<Failure>> {
    if reading.shape == (Shape::Envelope { ok: false }) {
        return Err(Box::new(model_error::judge(rules, reading)));
    }
    let opened = open::open(rules, reading);
    let checked = check::check(rules, opened)?;
    gate::admit(rules, checked)
}

/// The failure of an answer with media that may not stand in it.
pub(crate) fn refused(rules: &AnswerRules, reading: Reading, violations: &[Violation]) -> Box<Failure> {
    let partial_data = partial(rules, &reading);
    let error = error::of_media(violations);
    Box::new(Failure { partial_data, repairs: reading.ledger.into_entries(), ..Failure::new(error) })
}

/// What there is of the data of a reply that was read to its end.
pub(crate) fn partial(rules: &AnswerRules, reading: &Reading) -> Option<Value> {
    let value = &reading.value;
    let data = match reading.shape {
        Shape::Envelope { ok } => value.get("data").filter(|_| ok)?,
        Shape::Bare => value.node(),
    };
    partial::of_data(rules, value, data)
}

#[cfg(test)]
mod tests;
