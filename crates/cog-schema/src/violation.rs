use cog_json::{Path, Segment, ToJson, Writer};
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

/// A finding, told from a part of the envelope.
pub(crate) fn rooted(finding: Finding, path: &Path, code: Code) -> Violation {
    Violation {
        path: path.to_string(),
        rule: finding.rule,
        message: finding.message,
        code,
        suggestion: finding.suggestion,
    }
}

/// The path of a JSON pointer below `base`, in `value`, which tells the indices of arrays from keys.
pub(crate) fn path_of(base: &Path, value: cog_json::Node<'_>, pointer: &str) -> Path {
    let mut path = base.clone();
    let mut here = Some(value);
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let index = here.filter(|node| node.is_array()).and_then(|_| key.parse().ok());
        match index {
            Some(index) => path.extend([Segment::Index(index)]),
            None => path.extend([Segment::Key(&key)]),
        }
        here = here.and_then(|node| index.map_or_else(|| node.get(&key), |index| node.at(index)));
    }
    path
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    #[test]
    fn pointers_become_paths_by_what_stands_there() {
        let value = Value::parse(r#"{"0": ["a", {"b/c": 1}]}"#).unwrap();
        let mut base = Path::root();
        base.push_key("data");
        let path = |pointer| path_of(&base, value.node(), pointer).to_string();
        assert_eq!(path(""), "data");
        assert_eq!(path("/0/1/b~1c"), r#"data["0"][1]["b/c"]"#);
        assert_eq!(path("/0/1/absent"), r#"data["0"][1].absent"#);
    }

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
