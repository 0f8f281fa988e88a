//! Error codes as models and older runtimes write them (ruling R31).

use cog_json::{Node, Value};
use cog_schema::{Contract, Violation};
use cog_spec::{Code, ErrorCode};

use crate::error;

/// Returns the code of a text: one of the table, by its number, name or older text; one that the manifest declares; or
/// E2004 for any other that the error schema lists.
pub(crate) fn normalise(code: &str, declared: &[(String, String)], contract: &Contract) -> Option<ErrorCode> {
    if let Some(standard) = code.parse().ok().or_else(|| Code::from_text(code)) {
        return Some(ErrorCode::Standard(standard));
    }
    if declared.iter().any(|(known, _)| known == code) {
        return Some(ErrorCode::Declared(code.to_owned()));
    }
    contract.lists_code(code).then_some(ErrorCode::Standard(Code::NoActionPossible))
}

/// Checks an error against the contract, with its code as written or normalised: one of them must be valid.
pub(crate) fn check(error: Node<'_>, code: &ErrorCode, contract: &Contract) -> Vec<Violation> {
    let as_written = contract.check_error(error);
    if as_written.is_empty() {
        return as_written;
    }
    let normalised = contract.check_error(with_code(error, code).node());
    if normalised.len() < as_written.len() { normalised } else { as_written }
}

fn with_code(error: Node<'_>, code: &ErrorCode) -> Value {
    error::details(|w| {
        for (key, value) in error.members() {
            match key {
                "code" => w.field(key, code.as_str()),
                _ => w.field(key, &value),
            };
        }
    })
}
