//! Checks a complete reply: a valid answer, or why it is not one.

mod check;
mod emitted;
mod gate;
mod handoff;
mod model_error;
mod open;
mod outcome;
pub(crate) mod risk;

use cog_json::{Node, Value};
use cog_schema::Violation;

use crate::{AnswerRules, error, partial, shape::Shape};

pub(crate) use self::outcome::{Failure, ParsedReply, Success};

/// Repairs and checks a reply, and applies constraints and tier.
pub(crate) fn judge(rules: &AnswerRules, mut parsed: ParsedReply) -> Result<Success, Box<Failure>> {
    note_dropped(&mut parsed);
    if parsed.shape == (Shape::Envelope { ok: false }) {
        return Err(Box::new(model_error::judge(rules, parsed)));
    }
    let emitted = emitted::read(rules, &parsed.value);
    let mut opened = open::open(rules, parsed);
    opened.violations.extend(emitted.violations);
    let checked = check::check(rules, opened)?;
    let success = gate::admit(rules, checked)?;
    Ok(Success { emitted: emitted.context, ..success })
}

/// Records the members of an envelope that are not part of the answer (ruling R74). A null arm counts as absent, and
/// keys that begin with `_` are the runtime's own.
fn note_dropped(parsed: &mut ParsedReply) {
    let (arms, other) = match parsed.shape {
        Shape::Envelope { ok: true } => (["data", "error"], "partial_data"),
        Shape::Envelope { ok: false } => (["error", "partial_data"], "data"),
        Shape::Bare => return,
    };
    let is_part = |key: &str| ["ok", "meta"].contains(&key) || arms.contains(&key) || key.starts_with('_');
    let is_absent = |key: &str, member: Node<'_>| key == other && member.is_null();
    let dropped = |(key, member): &(&str, Node<'_>)| !(is_part(key) || is_absent(key, *member));
    parsed.ledger.note_dropped(parsed.value.members().filter(dropped));
}

/// Returns the failure of an answer with rejected media.
pub(crate) fn refused(rules: &AnswerRules, parsed: ParsedReply, violations: &[Violation]) -> Box<Failure> {
    let partial_data = partial(rules, &parsed);
    let error = error::from_media(violations);
    Box::new(Failure { partial_data, repairs: parsed.ledger.into_entries(), ..Failure::new(error) })
}

/// Returns the partial data of a reply that was parsed to its end.
pub(crate) fn partial(rules: &AnswerRules, parsed: &ParsedReply) -> Option<Value> {
    let value = &parsed.value;
    let data = match parsed.shape {
        Shape::Envelope { ok } => value.get("data").filter(|_| ok)?,
        Shape::Bare => value.node(),
    };
    partial::from_data(rules, value, data)
}

#[cfg(test)]
mod tests;
