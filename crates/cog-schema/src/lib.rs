//! The contract of a module: compiled once, checked, projected, sampled.
//!
//! [`Contract::compile`] takes `schema.json` and what the manifest says about it ([`Rules`]). After that nothing is
//! read or fetched again:
//!
//! - [`Contract::check_input`] before a model is asked, [`Contract::check_data`], [`Contract::check_meta`] and
//!   [`Contract::check_error`] on what it answered, [`Contract::check_at`] on the completed places of an answer that
//!   is still arriving. Each reports every [`Violation`] with its path, its code and what was probably meant.
//! - [`Contract::project`] reports a vendor as much of the contract as its dialect can take, and accounts for the rest.
//! - [`Contract::sample`] makes up an answer that keeps the contract.
//! - [`Contract::args_target`] and [`Contract::media_paths`] say where text and media go in an input,
//!   [`Contract::place_media`] where media go in an answer.
//!
//! Checks run on the tree of `cog_json` itself; no second tree is built for them.

mod args;
mod check;
mod contract;
mod dialect;
mod document;
mod engine;
mod facts;
mod finding;
mod join;
mod locate;
mod media;
mod outputs;
mod project;
mod rules;
mod sample;
mod schema_error;
mod search;
mod shape;
mod subschema;
mod violation;
mod words;

pub use check::{CustomValue, DataCheck, ExcessInsights};
pub use contract::Contract;
pub use engine::MAX_VIOLATIONS;
pub use join::join;
pub use media::MediaField;
pub use outputs::{MediaSlot, NamedSlot, Placement};
pub use project::{Loss, LossKind, Projection};
pub use rules::Rules;
pub use schema_error::SchemaError;
pub use violation::Violation;
pub use words::nearest;
