//! What a model is told when it is asked again (ruling R49).

use std::fmt::Write as _;

use cog_spec::ErrorBody;

use crate::error;

/// The most bytes of an answer that are shown to the model again.
const MAX_ANSWER: usize = 32 << 10;
/// The most violations that are told.
const MAX_TOLD: usize = 20;

/// What a model is told when it is asked again: its own answer, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// What it answered, at most 32 KiB of it; empty where it said nothing.
    pub said: String,
    /// What is wrong with that, and what is wanted.
    pub complaint: String,
}

impl Correction {
    pub(crate) fn new(said: Said, error: &ErrorBody) -> Self {
        Self { said: said.text, complaint: complaint(error) }
    }
}

/// The answer of a model as it came, as much of it as will be shown again.
#[derive(Debug, Default)]
pub(crate) struct Said {
    text: String,
    is_cut: bool,
}

impl Said {
    /// More of it.
    pub(crate) fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        let room = MAX_ANSWER.saturating_sub(self.text.len());
        let (kept, rest) = text.split_at_checked(text.floor_char_boundary(room)).unwrap_or((text, ""));
        self.text.push_str(kept);
        if !rest.is_empty() {
            self.is_cut = true;
            self.text.push_str("\n… (cut)");
        }
    }
}

fn complaint(error: &ErrorBody) -> String {
    let mut text = format!("This answer cannot be used. {}", error.message);
    let violations = error::violations(error);
    if !violations.is_empty() {
        text.push('\n');
    }
    for violation in violations.iter().take(MAX_TOLD) {
        let _ = write!(text, "\n- `{}` ({}): {}", violation.path, violation.rule, violation.message);
    }
    if let Some(more) = violations.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        let _ = write!(text, "\n- and {more} more");
    }
    text.push_str(
        "\n\nAnswer again: the whole JSON object in the format given, with this put right, and nothing else.",
    );
    text
}

#[cfg(test)]
mod tests {
    use cog_spec::Code;

    use super::*;

    #[test]
    fn a_long_answer_is_cut_between_characters() {
        let mut said = Said::default();
        for _ in 0..3 {
            said.push(&"ä".repeat(MAX_ANSWER / 3));
        }
        assert!(said.text.len() < MAX_ANSWER + 16 && said.text.ends_with("ä\n… (cut)"));
    }

    #[test]
    fn every_violation_is_told_with_its_path_and_rule() {
        let violations = [
            error::violation("data.a", "type", "found a number; allowed: a string"),
            error::violation("data.b", "required", "absent"),
        ];
        let told = complaint(&error::of_violations(&violations));
        assert!(told.contains(
            "\n- `data.a` (type): found a number; allowed: a string\n- `data.b` (required): absent\n"
        ));
        let many = vec![error::violation("data", "type", "wrong"); 30];
        assert!(complaint(&error::of_violations(&many)).contains("\n- and 10 more\n"));
        assert!(
            complaint(&ErrorBody::new(Code::ParseError, "No JSON"))
                .starts_with("This answer cannot be used. No JSON\n\nAnswer")
        );
    }
}
