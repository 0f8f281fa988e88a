//! The request for another attempt (ruling R49).

use std::fmt::Write as _;

use cog_spec::ErrorBody;

use crate::error;

/// The maximum number of bytes of an answer that are shown to the model again.
const MAX_ANSWER: usize = 32 << 10;
/// The maximum number of violations that are listed.
const MAX_REPORTED: usize = 20;

/// The messages that another attempt adds to the conversation: the model's answer and feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The model's answer, at most 32 KiB of it; empty if there was none.
    pub answer: String,
    /// The violations, and a request for a valid answer.
    pub feedback: String,
}

impl Correction {
    pub(crate) fn new(attempt: AttemptText, error: &ErrorBody) -> Self {
        Self { answer: attempt.text, feedback: feedback(error) }
    }
}

/// The text of an attempt, as much of it as will be shown again.
#[derive(Debug, Default)]
pub(crate) struct AttemptText {
    text: String,
    is_truncated: bool,
}

impl AttemptText {
    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        if self.is_truncated {
            return;
        }
        let room = MAX_ANSWER.saturating_sub(self.text.len());
        let (kept, rest) = text.split_at_checked(text.floor_char_boundary(room)).unwrap_or((text, ""));
        self.text.push_str(kept);
        if !rest.is_empty() {
            self.is_truncated = true;
            self.text.push_str("\n… (truncated)");
        }
    }
}

fn feedback(error: &ErrorBody) -> String {
    let mut text = format!("This answer cannot be used. {}", error.message);
    let violations = error::violations(error);
    if !violations.is_empty() {
        text.push('\n');
    }
    for violation in violations.iter().take(MAX_REPORTED) {
        let _ = write!(text, "\n- `{}` ({}): {}", violation.path, violation.rule, violation.message);
    }
    if let Some(more) = violations.len().checked_sub(MAX_REPORTED).filter(|more| *more > 0) {
        let _ = write!(text, "\n- and {more} more");
    }
    text.push_str(
        "\n\nAnswer again with the complete, corrected JSON object in the given format, and nothing else.",
    );
    text
}

#[cfg(test)]
mod tests {
    use cog_spec::Code;

    use super::*;

    #[test]
    fn truncates_long_answer_between_characters() {
        let mut text = AttemptText::default();
        for _ in 0..3 {
            text.push(&"ä".repeat(MAX_ANSWER / 3));
        }
        assert!(text.text.len() < MAX_ANSWER + 32 && text.text.ends_with("ä\n… (truncated)"));
    }

    #[test]
    fn lists_each_violation_with_path_and_rule() {
        let violations = [
            error::violation("data.a", "type", "found a number; allowed: a string"),
            error::violation("data.b", "required", "absent"),
        ];
        let text = feedback(&error::from_violations(&violations));
        assert!(text.contains(
            "\n- `data.a` (type): found a number; allowed: a string\n- `data.b` (required): absent\n"
        ));
        let listed = vec![error::violation("data", "type", "wrong"); MAX_REPORTED];
        assert!(!feedback(&error::from_violations(&listed)).contains("more\n"));
        let many = vec![error::violation("data", "type", "wrong"); 30];
        assert!(feedback(&error::from_violations(&many)).contains("\n- and 10 more\n"));
        assert!(
            feedback(&ErrorBody::new(Code::ParseError, "No JSON"))
                .starts_with("This answer cannot be used. No JSON\n\nAnswer")
        );
    }
}
