//! Codes of errors as models and older runtimes write them (ruling R31).

use cog_json::{Node, Value};
use cog_spec::{Code, ErrorCode};

use crate::error;

/// The code that a text means: one of the table, by its number, its name or its older text; else one that the
/// manifest declares.
pub(crate) fn normalise(said: &str, declared: &[(String, String)]) -> Option<ErrorCode> {
    let standard = said.parse().ok().or_else(|| Code::from_text(said)).map(ErrorCode::Standard);
    let is_declared = || declared.iter().any(|(code, _)| code == said);
    standard.or_else(|| is_declared().then(|| ErrorCode::Declared(said.to_owned())))
}

/// An error with its code normalised, as a module's schema is to see it.
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
