//! The repair pass: form is put in order, meaning is left alone (rulings R24–R26).
//!
//! What a strict dialect made the model write is no repair: a null arm of the envelope, and a null that stands
//! for a member left out, are dropped on reading (docs/spec/modules.md).

pub(crate) mod explain;
mod ledger;
pub(crate) mod said;
pub(crate) mod trim;

pub(crate) use self::ledger::Ledger;
