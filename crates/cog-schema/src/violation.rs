use cog_json::Path;
use cog_spec::Code;
use serde::Serialize;

use crate::finding::Finding;

/// A violation of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Its path (ruling R44), from `input`, `data`, `meta` or `error`. For a missing field, the path that it would have.
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
        Self {
            path: path.to_string(),
            rule: rule.to_owned(),
            message: message.into(),
            code,
            suggestion: None,
        }
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
        path: path.to_string(),
        rule: finding.rule,
        message: finding.message,
        code,
        suggestion: finding.suggestion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_codes_become_the_general_code() {
        let violation = |code| Violation::new(&Path::root(), "type", code, "");
        let (one, other) = (violation(Code::TypeMismatch), violation(Code::MissingRequiredField));
        assert_eq!(
            Violation::common_code(&[one.clone(), one.clone()], Code::InvalidInput),
            Code::TypeMismatch
        );
        assert_eq!(Violation::common_code(&[one, other], Code::InvalidInput), Code::InvalidInput);
    }
}
