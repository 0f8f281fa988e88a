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

/// Checks an error against the contract, with its code as written, normalised, or as the model wrote it: one of them must be
/// valid.
pub(crate) fn check(error: Node<'_>, code: &ErrorCode, contract: &Contract) -> Vec<Violation> {
    let as_written = contract.check_error(error);
    let normalised = || contract.check_error(with_code(error, code.as_str()).node());
    let before = || Some(contract.check_error(with_code(error, legacy_code(error, code, contract)?).node()));
    let fewer =
        |best: Vec<Violation>, other: Vec<Violation>| if other.len() < best.len() { other } else { best };
    if as_written.is_empty() {
        return as_written;
    }
    let best = fewer(as_written, normalised());
    if best.is_empty() { best } else { before().into_iter().fold(best, fewer) }
}

/// Returns `details.legacy_code`, the code that the runtime replaced, if `code` replaces it.
fn legacy_code<'a>(error: Node<'a>, code: &ErrorCode, contract: &Contract) -> Option<&'a str> {
    let legacy = error.get("details")?.get("legacy_code")?.as_str()?;
    (normalise(legacy, &[], contract).as_ref() == Some(code)).then_some(legacy)
}

fn with_code(error: Node<'_>, code: &str) -> Value {
    error::details(|w| {
        for (key, value) in error.members() {
            match key {
                "code" => w.field(key, code),
                _ => w.field(key, &value),
            };
        }
    })
}
