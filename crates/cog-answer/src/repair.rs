//! Repairs the form of an answer, never its meaning (rulings R24–R26).
//!
//! Nulls that a strict dialect forces the model to write are dropped without a repair: a null member of the envelope,
//! and a null for an omitted member (docs/spec/modules.md).

pub(crate) mod explain;
mod ledger;
pub(crate) mod reply_meta;
pub(crate) mod trim;

pub(crate) use self::ledger::Ledger;
