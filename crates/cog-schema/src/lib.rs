//! The contract of a module: compiled once, then used to check, project and sample.
//!
//! [`Contract::compile`] takes `schema.json` and the [`Rules`] of the manifest. No file is read and nothing is fetched.
//!
//! - [`Contract::check_input`] runs before a model is called. [`Contract::check_data`], [`Contract::check_meta`] and
//!   [`Contract::check_error`] check its answer, and [`Contract::check_at`] the completed values of a partial answer.
//!   Each returns every [`Violation`] with path, code and suggestion.
//! - [`Contract::project`] translates the contract into the dialect of a provider, with a list of the losses.
//!   [`Grammar`] is the grammar of a projection for llama.cpp.
//! - [`Contract::portability`] returns where each constraint is enforced, for a provider.
//! - [`Enforcement`] lists what an engine ignores of a schema that it accepts.
//! - [`Contract::conflicts`] proves that no answer can succeed, where the schema and the rules exclude each other.
//! - [`Contract::changes_to`] compares a part with a newer contract, with a value that shows what breaks.
//! - [`Contract::sample`] generates an answer that satisfies the contract.
//! - [`Contract::args_target`] and [`Contract::media_paths`] find the fields for text and media in an input,
//!   [`Contract::place_media`] the fields for generated media in an answer.
//! - [`Contract::shape`] returns the types and members of a part, for checks without a value.
//!
//! Checks read the tree of `cog_json` directly; no second tree is built.

mod check;
mod compare;
mod conflict;
mod constraints;
mod contract;
mod dialect;
mod document;
mod enforcement;
mod engine;
mod finding;
mod foreign;
mod gbnf;
mod graph;
mod input_fields;
mod locate;
mod outputs;
mod pattern;
mod portability;
mod project;
mod rules;
mod sample;
mod search;
mod shape;
mod subschema;
mod violation;
mod wording;

pub use check::{DataCheck, ExcessInsights};
pub use compare::{ComparedPart, SchemaChange, SchemaEffect};
pub use contract::Contract;
pub use enforcement::Enforcement;
pub use engine::MAX_VIOLATIONS;
pub use foreign::{ForeignSchema, as_arguments};
pub use gbnf::Grammar;
pub use input_fields::{FieldTypes, InputField, MediaField};
pub use locate::context_pointer;
pub use outputs::{MediaSlot, NamedSlot, Placement};
pub use portability::{EnforcedBy, Portability, PortableConstraint};
pub use project::{Loss, LossKind, MemberCount, Projection};
pub use rules::Rules;
pub use shape::{CertainShape, Exclusion, Member, Shape, Types};
pub use violation::{SchemaError, Violation};
pub use wording::{nearest, type_name};
