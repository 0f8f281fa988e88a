use cog_json::Path;
use cog_spec::Code;
use serde::Serialize;
use thiserror::Error;

use crate::finding::Finding;

/// A violation of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Its path (ruling R44), from `input`, `data`, `meta` or `error`. For a missing field, the path that it would have.
    /// A path over 1,024 characters is truncated.
    pub path: String,
    /// The keyword of the schema, or a rule of the runtime: `overflow`, `extensible_enum`, `rationale`.
    pub rule: String,
    /// What was found and what is allowed. Only short values without white space are repeated.
    pub message: String,
    /// Its code if it is the only violation.
    #[serde(skip)]
    pub code: Code,
    /// What the author probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Violation {
    pub(crate) fn new(path: &Path, rule: &str, code: Code, message: impl Into<String>) -> Self {
        Self { path: shown(path), rule: rule.to_owned(), message: message.into(), code, suggestion: None }
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Returns the code of a failure with several violations: their common code, or `general` if they differ.
    #[must_use]
    pub fn common_code(violations: &[Violation], general: Code) -> Code {
        match violations.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other.code == first.code) => first.code,
            _ => general,
        }
    }
}

/// Returns a finding as a violation.
pub(crate) fn rooted(finding: Finding, path: &Path, code: Code) -> Violation {
    Violation {
        path: shown(path),
        rule: finding.rule,
        message: finding.message,
        code,
        suggestion: finding.suggestion,
    }
}

/// Returns a path as text, truncated if it is long: a key may be as long as a document.
fn shown(path: &Path) -> String {
    const MAX_SHOWN: usize = 1024;
    let text = path.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// An error of a schema document, or a warning of [`Contract::warnings`](crate::Contract::warnings).
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{}: {message}", if .pointer.is_empty() { "/" } else { .pointer.as_str() })]
pub struct SchemaError {
    /// Its JSON pointer (RFC 6901); empty for the complete document.
    pub pointer: String,
    /// What was found and what is allowed.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl SchemaError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into(), suggestion: None }
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Returns the code of the envelope: E4008, the module does not load.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::ModuleInvalid
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Segment;

    use super::*;

    #[test]
    fn long_path_is_truncated() {
        let path = Path::from_iter([Segment::Key("input"), Segment::Key(&"é".repeat(1_000_000))]);
        let violation = Violation::new(&path, "additionalProperties", Code::InvalidInput, "");
        assert_eq!(violation.path, format!("input[\"{}…", "é".repeat(1024 - "input[\"".len())));
    }

    #[test]
    fn different_codes_become_the_general_code() {
        let violation = |code| Violation::new(&Path::root(), "type", code, "");
        let one = violation(Code::TypeMismatch);
        let other = violation(Code::MissingRequiredField);
        assert_eq!(
            Violation::common_code(&[one.clone(), one.clone()], Code::InvalidInput),
            Code::TypeMismatch
        );
        assert_eq!(Violation::common_code(&[one, other], Code::InvalidInput), Code::InvalidInput);
    }
}
