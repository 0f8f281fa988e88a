//! Checks a complete reply: a valid answer, or why it is not one.

mod check;
mod gate;
mod model_error;
mod open;
pub(crate) mod risk;

use cog_json::{Path, Value};
use cog_schema::Violation;
use cog_spec::{Code, ErrorBody, Meta, Repair, Secret, Warning};

use crate::{AnswerRules, error, partial, repair::Ledger, shape::Shape};

/// A reply that was parsed to its end.
#[derive(Debug)]
pub(crate) struct ParsedReply {
    /// The complete JSON document.
    pub(crate) value: Value,
    pub(crate) shape: Shape,
    /// What the parser tolerated.
    pub(crate) ledger: Ledger,
}

/// A valid answer.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) meta: Meta,
    pub(crate) data: Value,
    /// Paths of the data that were changed.
    pub(crate) changed: Vec<Path>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) warnings: Vec<Warning>,
}

/// Why there is no valid answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ErrorBody,
    /// The meta of the model's own error; none for an error of the runtime (ruling R32).
    pub(crate) meta: Option<Meta>,
    pub(crate) partial_data: Option<Value>,
    pub(crate) repairs: Vec<Repair>,
    /// Warnings, which a sync envelope contains beside the error.
    pub(crate) warnings: Vec<Warning>,
}

impl Failure {
    /// Whether the answer violated its contract or is not JSON, so that another attempt can help.
    pub(crate) fn is_contract_violation(&self) -> bool {
        let codes = [
            Code::ParseError,
            Code::OutputSchemaViolation,
            Code::MissingRationale,
            Code::OverflowLimit,
            Code::InvalidEnum,
        ];
        self.meta.is_none() && codes.iter().any(|code| self.error.code == (*code).into())
    }

    /// Masks these secrets in an error of the runtime. An error with a meta is the model's own.
    pub(crate) fn without(self, secrets: &[Secret]) -> Self {
        let of_model = self.meta.is_some();
        let error = secrets.iter().filter(|_| !of_model).fold(self.error, ErrorBody::without);
        Self { error, ..self }
    }

    /// Creates the failure of an error of the runtime.
    pub(crate) fn new(error: ErrorBody) -> Self {
        Self { error, meta: None, partial_data: None, repairs: Vec::new(), warnings: Vec::new() }
    }
}

/// Repairs and checks a reply, and applies constraints and tier.
pub(crate) fn judge(rules: &AnswerRules, parsed: ParsedReply) -> Result<Success, Box<Failure>> {
    if parsed.shape == (Shape::Envelope { ok: false }) {
        return Err(Box::new(model_error::judge(rules, parsed)));
    }
    let opened = open::open(rules, parsed);
    let checked = check::check(rules, opened)?;
    gate::admit(rules, checked)
}

/// Returns the failure of an answer with rejected media.
pub(crate) fn refused(rules: &AnswerRules, parsed: ParsedReply, violations: &[Violation]) -> Box<Failure> {
    let partial_data = partial(rules, &parsed);
    let error = error::of_media(violations);
    Box::new(Failure { partial_data, repairs: parsed.ledger.into_entries(), ..Failure::new(error) })
}

/// Returns the partial data of a reply that was parsed to its end.
pub(crate) fn partial(rules: &AnswerRules, parsed: &ParsedReply) -> Option<Value> {
    let value = &parsed.value;
    let data = match parsed.shape {
        Shape::Envelope { ok } => value.get("data").filter(|_| ok)?,
        Shape::Bare => value.node(),
    };
    partial::from_data(rules, value, data)
}

#[cfg(test)]
mod tests;
