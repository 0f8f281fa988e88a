//! Decides whether a schema accepts every value of another one, with the set operations of `jsonschema::canonical`.
//!
//! They say *yes* only with a proof. What they cannot express is not decided.

use jsonschema::{
    Draft, PatternOptions,
    canonical::{self, CanonicalSchema, Containment, PreparedDocument, Satisfiability},
};
use serde_json::Value;

use super::PATTERN_SIZE;

/// Whether a schema accepts every value of another one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cover {
    /// It does.
    Proven,
    /// A schema of the values that it may refuse.
    Difference(Value),
    /// Not decided.
    Undecided,
}

/// Compares two schemas of one document, by their JSON pointers.
pub(crate) fn cover(document: &Value, outer: &str, inner: &str) -> Cover {
    covered(document, outer, inner).unwrap_or(Cover::Undecided)
}

fn covered(document: &Value, outer: &str, inner: &str) -> Option<Cover> {
    let options = canonical::options()
        .offline()
        .with_draft(Draft::Draft7)
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE));
    let prepared = options.prepare(document).ok()?;
    let outer = at(&prepared, outer)?;
    let inner = at(&prepared, inner)?;
    if matches!(outer.covers(&inner), Ok(Containment::Yes)) {
        return Some(Cover::Proven);
    }
    let difference = inner.subtract(&outer).ok()?;
    Some(match difference.satisfiability() {
        Satisfiability::No => Cover::Proven,
        Satisfiability::Yes | Satisfiability::Unknown => Cover::Difference(difference.to_json_schema()),
    })
}

fn at(prepared: &PreparedDocument<'_>, pointer: &str) -> Option<CanonicalSchema> {
    prepared.canonicalize_at(pointer).ok()
}
