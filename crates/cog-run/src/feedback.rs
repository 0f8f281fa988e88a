//! What a person says about an answer: whether it is right, and the right answer if it is not (docs/labels.md).

use std::str::FromStr;

use cog_json::{Node, ToJson as _, Value};
use cog_module::Module;
use cog_spec::{Code, ErrorBody};
use serde::{Deserialize, Serialize};

/// The maximum size of a corrected answer, in bytes of JSON.
const MAX_DATA: usize = 1 << 20;
/// The maximum number of characters of a note.
const MAX_NOTE: usize = 2_000;
/// The maximum number of violations that a message lists.
const MAX_LISTED: usize = 5;

/// Whether an answer is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelKind {
    /// The answer is right.
    Right,
    /// The answer is wrong.
    Wrong,
    /// The answer is wrong, and the right one is known.
    Corrected,
}

impl LabelKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Right, Self::Wrong, Self::Corrected];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Corrected => "corrected",
        }
    }
}

impl FromStr for LabelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a label: use right, wrong or corrected"))
    }
}

/// A label for a run, before it is stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Feedback {
    /// Whether the answer is right.
    pub label: LabelKind,
    /// The right answer, for [`LabelKind::Corrected`].
    pub data: Option<Value>,
    /// Why, in a sentence.
    pub note: Option<String>,
}

impl Feedback {
    /// Creates a label.
    ///
    /// # Errors
    /// E1002 for a correction without data, E1001 for data with another label, E1005 for data over 1 MiB or a note over 2,000
    /// characters.
    pub fn new(label: LabelKind, data: Option<Value>, note: Option<String>) -> Result<Self, ErrorBody> {
        match (label, &data) {
            (LabelKind::Corrected, None) => {
                return Err(ErrorBody::new(
                    Code::MissingRequiredField,
                    "`corrected` needs the right answer as `data`",
                )
                .suggest("Label the answer `wrong` if you do not know the right one."));
            }
            (LabelKind::Right | LabelKind::Wrong, Some(_)) => {
                let message = format!("`data` cannot be combined with the label `{}`", label.as_str());
                return Err(ErrorBody::new(Code::InvalidInput, message).suggest("Use the label `corrected`."));
            }
            _ => {}
        }
        let note = note.map(|note| note.trim().to_owned()).filter(|note| !note.is_empty());
        if note.as_ref().is_some_and(|note| note.chars().count() > MAX_NOTE) {
            return Err(too_large(&format!("the note has more than {MAX_NOTE} characters")));
        }
        if data.as_ref().is_some_and(|data| data.to_json().len() > MAX_DATA) {
            return Err(too_large("the corrected answer is larger than 1 MiB"));
        }
        Ok(Self { label, data, note })
    }

    /// Reads `{"label", "data"?, "note"?}`.
    ///
    /// # Errors
    /// E1001 for an unknown member, E1002 without `label`, E1003 for a value of another type or if it is not an object,
    /// E1004 for an unknown label, and the errors of [`Feedback::new`].
    pub fn read(node: Node<'_>) -> Result<Self, ErrorBody> {
        if !node.is_object() {
            return Err(
                ErrorBody::new(Code::TypeMismatch, "the feedback must be a JSON object").suggest(FORM)
            );
        }
        if let Some((key, _)) = node.members().find(|(key, _)| !["label", "data", "note"].contains(key)) {
            let key: String = key.chars().take(60).collect();
            let message = format!("unknown member `{}`", key.escape_debug());
            return Err(ErrorBody::new(Code::InvalidInput, message).suggest(FORM));
        }
        let label = node
            .get("label")
            .ok_or_else(|| ErrorBody::new(Code::MissingRequiredField, "`label` is missing").suggest(FORM))?;
        let label = label.as_str().ok_or_else(|| wrong_type("label", "right, wrong or corrected"))?;
        let label = label.parse().map_err(|_| {
            ErrorBody::new(Code::UnsupportedValue, "`label` must be right, wrong or corrected").suggest(FORM)
        })?;
        let present = |key: &str| node.get(key).filter(|value| !value.is_null());
        let note = present("note")
            .map(|note| note.as_str().map(str::to_owned).ok_or_else(|| wrong_type("note", "a string")));
        Self::new(label, present("data").map(Node::to_value), note.transpose()?)
    }

    /// Checks the corrected answer against the contract of the module.
    ///
    /// # Errors
    /// E1001 with each violation in `details.violations`.
    pub fn check(&self, module: &Module) -> Result<(), ErrorBody> {
        let Some(data) = &self.data else { return Ok(()) };
        let violations = module.contract.check_data(data.node()).violations;
        if violations.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = violations
            .iter()
            .take(MAX_LISTED)
            .map(|found| format!("{}: {}", found.path, found.message))
            .collect();
        let more = if violations.len() > MAX_LISTED { "; …" } else { "" };
        let message = format!(
            "the corrected answer does not fit the schema of `{}`: {}{more}",
            module.manifest.name,
            list.join("; ")
        );
        let entries: Vec<_> = violations
            .iter()
            .map(|found| serde_json::json!({ "path": found.path, "rule": found.rule, "message": found.message }))
            .collect();
        let details = Value::from(serde_json::json!({ "violations": entries }));
        let suggestion = violations.iter().find_map(|found| found.suggestion.clone());
        let error = ErrorBody::new(Code::InvalidInput, message).with_details(details);
        Err(error.suggest(
            suggestion.unwrap_or_else(|| "The corrected answer is the whole data of an envelope.".to_owned()),
        ))
    }
}

const FORM: &str = "Write {\"label\": \"right\"}, {\"label\": \"wrong\", \"note\": …} or {\"label\": \"corrected\", \"data\": …}.";

fn wrong_type(key: &str, expected: &str) -> ErrorBody {
    ErrorBody::new(Code::TypeMismatch, format!("`{key}` must be {expected}")).suggest(FORM)
}

fn too_large(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InputTooLarge, message).suggest("Shorten it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let value = Value::parse(text).unwrap();
        Feedback::read(value.node()).map_or_else(|error| error.code.as_str().to_owned(), |_| "ok".to_owned())
    }

    #[test]
    fn feedback_has_a_label_and_data_only_with_a_correction() {
        let cases = [
            (r#"{"label": "right"}"#, "ok"),
            (r#"{"label": "wrong", "note": "too strict", "data": null}"#, "ok"),
            (r#"{"label": "corrected", "data": {"a": 1}}"#, "ok"),
            (r#"{"label": "corrected"}"#, "E1002"),
            (r#"{"label": "right", "data": {}}"#, "E1001"),
            (r#"{"label": "maybe"}"#, "E1004"),
            (r#"{"label": 1}"#, "E1003"),
            (r#"{"label": "wrong", "note": 1}"#, "E1003"),
            (r#"{"lable": "wrong"}"#, "E1001"),
            ("{}", "E1002"),
            ("[]", "E1003"),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text), expected, "{text}");
        }
        let long = format!(r#"{{"label": "wrong", "note": "{}"}}"#, "x".repeat(MAX_NOTE + 1));
        assert_eq!(code(&long), "E1005");
        let large = format!(r#"{{"label": "corrected", "data": "{}"}}"#, "x".repeat(MAX_DATA));
        assert_eq!(code(&large), "E1005");
    }
}
