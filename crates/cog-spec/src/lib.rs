//! The data of the specification, and what passes between the stages of a run.
//!
//! Nothing here acts: no clock, no file, no socket. A type that two crates exchange lives here; a
//! type that one crate keeps to itself does not.
//!
//! * what a module says of itself: [`Manifest`], with the defaults of its [`Tier`] resolved;
//! * what a run answers: [`Envelope`] and [`Chunk`], with [`Meta`], [`Risk`], [`ErrorBody`];
//! * the one table of error codes: [`Code`];
//! * the JSON Schemas of these documents, as they are published: [`Schema`];
//! * what passes between the stages: [`ModelEvent`], [`Usage`], [`FinishReason`], [`Repair`],
//!   [`Secret`].

mod capability;
mod chunk;
mod code;
mod envelope;
mod event;
mod failure;
mod manifest;
mod meta;
mod repair;
mod risk;
mod schemas;
mod secret;
mod tier;
mod warning;

pub use capability::{Capabilities, Dialect, Modality, Transport};
pub use chunk::{Checkpoint, Chunk, Progress, Recovery, ViolationNote};
pub use code::{Category, Code, ErrorCode, Recoverable};
pub use envelope::{Envelope, ErrorBody, Outcome};
pub use event::{FinishReason, ModelEvent, ModelMedia, ToolCallDelta, Usage};
pub use failure::DataError;
pub use manifest::{
    Compat, Constraints, ContextRule, Enums, Failure, Format, Generation, Invocation, IoPointers, Manifest,
    MediaConstraints, Modalities, Overflow, Policies, Requirements, Response, ToolRules,
};
pub use meta::{Fallback, Meta, RUNTIME_KEYS, RuntimeMeta};
pub use repair::{Repair, RepairRule};
pub use risk::{Risk, RiskRule, RiskValue};
pub use schemas::Schema;
pub use secret::Secret;
pub use tier::{ChunkType, EnumStrategy, OnViolation, ParseEnumError, ResponseMode, Strictness, Tier};
pub use warning::{Warning, WarningCode};
