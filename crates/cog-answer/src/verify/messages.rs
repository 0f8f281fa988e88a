//! Harmony messages (appendix A), checked by `cog-harmony`.

use cog_harmony::{Document, PartSupport, Problem, check};
use cog_schema::Violation;

use super::{Kind, Verdict};
use crate::error::violation;

/// Checks a history; with a model also whether it accepts the parts.
pub fn verify_messages(text: &str, model: Option<&PartSupport>) -> Verdict {
    let document = Document::parse(text);
    let problems = match document.as_ref().map(Document::messages) {
        Ok(Ok(messages)) => check(messages, model),
        Ok(Err(problem)) => vec![problem],
        Err(problem) => vec![problem.clone()],
    };
    let (errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.rule.is_error());
    let warnings = warnings.into_iter().map(described).collect();
    Verdict { warnings, ..Verdict::new(Some(Kind::Messages), errors.into_iter().map(described).collect()) }
}

fn described(problem: Problem) -> Violation {
    let suggestion = Some(problem.rule.suggestion.to_owned());
    Violation { suggestion, ..violation(&problem.path, problem.rule.name, problem.message) }
}
