use cog_json::{Path, ToJson, Writer};
use cog_spec::Code;

use crate::finding::Finding;

/// One place where a value breaks its contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as ruling R44 writes paths, from `input`, `data`, `meta` or `error`. Of an absent field, where
    /// it should be.
    pub path: String,
    /// The keyword of the schema, or the name of the runtime's own rule: `overflow`, `extensible_enum`,
    /// `rationale`.
    pub rule: String,
    /// What was found and what is allowed. Values are repeated only where they are a single short word.
    pub message: String,
    /// The code it has, were it alone.
    pub code: Code,
    /// What was probably meant.
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

    /// The code of a failure that has several violations: theirs if they agree, else `general`.
    #[must_use]
    pub fn common_code(violations: &[Violation], general: Code) -> Code {
        match violations.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other.code == first.code) => first.code,
            _ => general,
        }
    }
}

impl ToJson for Violation {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("path", &self.path);
            w.field("rule", &self.rule);
            w.field("message", &self.message);
            w.optional("suggestion", &self.suggestion);
        });
    }
}

/// A finding, reported from a part of the envelope.
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
    fn different_codes_have_the_general_one() {
        let violation = |code| Violation::new(&Path::root(), "type", code, "");
        let (one, other) = (violation(Code::TypeMismatch), violation(Code::MissingRequiredField));
        assert_eq!(
            Violation::common_code(&[one.clone(), one.clone()], Code::InvalidInput),
            Code::TypeMismatch
        );
        assert_eq!(Violation::common_code(&[one, other], Code::InvalidInput), Code::InvalidInput);
    }
}
