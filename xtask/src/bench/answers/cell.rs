//! The answers of a model to a task in one form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answers of a model to the first cases of a task in one form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cell {
    /// The time of all answers.
    pub(super) seconds: f64,
    pub(super) answers: Vec<Answer>,
}

impl Cell {
    /// Returns the answers to the first cases, with their share of the time.
    pub(super) fn first(mut self, cases: usize) -> Self {
        self.seconds *= cases as f64 / self.answers.len().max(1) as f64;
        self.answers.truncate(cases);
        self
    }

    pub(super) fn right(&self) -> u64 {
        self.answers.iter().filter(|answer| answer.right).count() as u64
    }

    pub(super) fn cut(&self) -> usize {
        self.answers.iter().filter(|answer| answer.cut).count()
    }

    pub(super) fn failed(&self) -> usize {
        self.answers.iter().filter(|answer| answer.failed).count()
    }

    /// Returns the output tokens of an answer, on average.
    pub(super) fn tokens(&self) -> f64 {
        self.answers.iter().map(|answer| answer.tokens).sum::<u64>() as f64 / self.answers.len() as f64
    }

    /// Returns the seconds of an answer, on average.
    pub(super) fn pace(&self) -> f64 {
        self.seconds / self.answers.len() as f64
    }
}

/// An answer to a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) right: bool,
    /// It reached the limit of tokens.
    pub(super) cut: bool,
    /// It is an error for another reason, or no JSON.
    pub(super) failed: bool,
    /// The output tokens.
    pub(super) tokens: u64,
    /// The confidence, if the answer is an envelope with data.
    #[serde(default)]
    pub(super) confidence: Option<f64>,
    /// What was answered: the data, or the code of the error.
    pub(super) answer: Value,
}

impl Answer {
    /// Reads what `ask.py` prints for a case.
    pub(super) fn of_engine(reply: &Value, truth: &Value) -> Self {
        let cut = *field(reply, "/cut") == true;
        Self {
            right: is_right(field(reply, "/data"), truth),
            cut,
            failed: !cut && field(reply, "/data").is_null(),
            tokens: field(reply, "/tokens").as_u64().unwrap_or_default(),
            confidence: None,
            answer: field(reply, "/data").clone(),
        }
    }

    /// Reads an envelope.
    pub(super) fn of_cog(envelope: &Value, truth: &Value) -> Self {
        let cut = *field(envelope, "/error/code") == "E2003";
        let ok = *field(envelope, "/ok") == true;
        Self {
            right: ok && is_right(field(envelope, "/data"), truth),
            cut,
            failed: !ok && !cut,
            tokens: field(envelope, "/meta/usage/output_tokens").as_u64().unwrap_or_default(),
            confidence: field(envelope, "/meta/confidence").as_f64().filter(|_| ok),
            answer: field(envelope, if ok { "/data" } else { "/error/code" }).clone(),
        }
    }
}

/// Returns whether data have all fields of the true answer. The case of letters, and spaces around a string, do not count.
fn is_right(data: &Value, truth: &Value) -> bool {
    let mut fields = truth.as_object().into_iter().flatten();
    fields.all(|(name, expected)| match (data.get(name).unwrap_or(&Value::Null), expected) {
        (Value::String(answered), Value::String(expected)) => {
            answered.trim().to_lowercase() == expected.trim().to_lowercase()
        }
        (answered, expected) => answered == expected,
    })
}

/// Returns the value at a pointer; null if there is none.
pub(super) fn field<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_right_if_all_its_fields_are() {
        let truth = json!({"sender": "Anna", "quantity": 3});
        assert!(is_right(&json!({"quantity": 3, "sender": " anna", "more": null}), &truth));
        assert!(!is_right(&json!({"quantity": 4, "sender": "Anna"}), &truth));
        assert!(!is_right(&json!({"quantity": "3", "sender": "Anna"}), &truth));
        assert!(!is_right(&Value::Null, &truth));
    }

    #[test]
    fn an_envelope_is_cut_or_failed_by_its_code() {
        let truth = json!({"label": "a"});
        let envelope = |code: &str| json!({"ok": false, "error": {"code": code}, "meta": {"usage": {"output_tokens": 7}}});
        let cut = Answer::of_cog(&envelope("E2003"), &truth);
        let failed = Answer::of_cog(&envelope("E2004"), &truth);
        assert_eq!((cut.cut, cut.failed, cut.tokens), (true, false, 7));
        assert_eq!((failed.cut, failed.failed, failed.answer), (false, true, json!("E2004")));
        assert!(Answer::of_cog(&json!({"ok": true, "data": {"label": "A"}}), &truth).right);
    }
}
