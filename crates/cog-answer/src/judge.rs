//! Checks a complete reply: a valid answer, or why it is not one.

mod check;
mod gate;
mod model_error;
mod open;
mod outcome;
pub(crate) mod risk;

use cog_json::Value;
use cog_schema::Violation;

use crate::{AnswerRules, error, partial, shape::Shape};

pub(crate) use self::outcome::{Failure, ParsedReply, Success};

/// Repairs and checks a reply, and applies constraints and tier.
pub(crate) fn judge(rules: &AnswerRules, parsed: ParsedReply) -> Result<Success, Box<Failure>> {
    if parsed.shape == (Shape::Envelope { ok: false }) {
        return Err(Box::new(model_error::judge(rules, parsed)));
    }
    let opened = open::open(rules, parsed);
    let checked = check::check(rules, opened)?;
    gate::admit(rules, checked)
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
