//! Error codes as models and older runtimes write them (ruling R31).

use cog_json::{Node, Value};
use cog_spec::{Code, ErrorCode};

use crate::error;

/// Returns the code of a text: one of the table, by its number, name or older text; otherwise one that the manifest
/// declares.
pub(crate) fn normalise(code: &str, declared: &[(String, String)]) -> Option<ErrorCode> {
    let standard = code.parse().ok().or_else(|| Code::from_text(code)).map(ErrorCode::Standard);
    let is_declared = || declared.iter().any(|(known, _)| known == code);
    standard.or_else(|| is_declared().then(|| ErrorCode::Declared(code.to_owned())))
}

/// Returns the error with its normalised code, for the check against the module's schema.
pub(crate) fn with_code(error: Node<'_>, code: &ErrorCode) -> Value {
    error::details(|w| {
        for (key, value) in error.members() {
            match key {
                "code" => w.field(key, code.as_str()),
                _ => w.field(key, &value),
            };
        }
    })
}
