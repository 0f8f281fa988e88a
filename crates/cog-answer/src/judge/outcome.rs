//! A parsed reply, and the result of judging it.

use cog_json::{Path, Value};
use cog_spec::{Code, ErrorBody, Meta, Repair, Secret, Warning};

use crate::{repair::Ledger, shape::Shape};

/// A reply that was parsed to its end.
#[derive(Debug)]
pub(crate) struct ParsedReply {
    /// The complete JSON document.
    pub(crate) value: Value,
    pub(crate) shape: Shape,
    /// The deviations that the parser accepted.
    pub(crate) ledger: Ledger,
}

/// A valid answer.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) meta: Meta,
    pub(crate) data: Value,
    /// The context that the answer emits.
    pub(crate) emitted: Option<Value>,
    /// Paths of the data that were changed.
    pub(crate) changed: Vec<Path>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) warnings: Vec<Warning>,
    /// The packet for the next agent.
    pub(crate) handoff: Option<Value>,
}

/// A failed answer.
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
        let from_model = self.meta.is_some();
        let error = secrets.iter().filter(|_| !from_model).fold(self.error, ErrorBody::without);
        Self { error, ..self }
    }

    /// Creates the failure of an error of the runtime.
    pub(crate) fn new(error: ErrorBody) -> Self {
        Self { error, meta: None, partial_data: None, repairs: Vec::new(), warnings: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_attempt_helps_if_the_runtime_found_the_answer_invalid() {
        for (code, expected) in [
            (Code::ParseError, true),
            (Code::OutputSchemaViolation, true),
            (Code::MissingRationale, true),
            (Code::OverflowLimit, true),
            (Code::InvalidEnum, true),
            (Code::LowConfidence, false),
            (Code::ConstraintViolation, false),
            (Code::Timeout, false),
        ] {
            let failure = Failure::new(ErrorBody::new(code, "No."));
            assert_eq!(failure.is_contract_violation(), expected, "{code}");
            let meta = Value::parse(r#"{"confidence":0.5,"risk":"low","explain":"No."}"#).unwrap();
            let of_model = Failure { meta: Meta::read(meta.node()), ..failure };
            assert!(of_model.meta.is_some() && !of_model.is_contract_violation(), "{code}");
        }
    }
}
