//! What supports an answer besides what the model states of itself (docs/evidence.md): pure functions of answers and sources.

mod agreement;
mod grounding;
mod logprob;

pub(crate) use self::logprob::TokenLog;
pub use self::{
    agreement::{Decision, Majority, has_deciding_fields, majority},
    grounding::{GroundingSource, ground},
};

/// The members of `data` that the specification defines: they explain an answer and do not decide it.
const EXPLANATIONS: [&str; 5] = ["rationale", "extensions", "citation_map", "metadata", "handoff"];

/// Returns whether a dotted path of names is one of these fields, or inside one. Elements of an array have its name.
fn is_within(path: &str, fields: &[String]) -> bool {
    fields.iter().any(|field| {
        let rest = path.strip_prefix(field.strip_prefix("data.").unwrap_or(field));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Returns the path of a member of a value at a dotted path.
fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
