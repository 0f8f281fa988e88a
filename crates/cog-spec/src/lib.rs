//! The data types of the specification, and the types that the stages of a run exchange.
//!
//! This crate has no clock, file or socket. A type that two crates exchange is here.
//!
//! * the manifest of a module: [`Manifest`], with the defaults of its [`Tier`] resolved;
//! * the answer of a run: [`Envelope`] and [`Chunk`], with [`Meta`], [`Risk`], [`ErrorBody`];
//! * the table of error codes: [`Code`];
//! * the published JSON Schemas of these documents: [`Schema`];
//! * the types between the stages: [`ModelEvent`], [`Usage`], [`FinishReason`], [`Repair`], [`Secret`].

mod calibration_file;
mod capability;
mod check;
mod chunk;
mod code;
mod composition;
mod confidence;
mod cost;
mod envelope;
mod event;
mod evidence;
mod form;
mod forms_file;
mod generation;
mod manifest;
pub mod media_type;
mod meta;
mod risk;
#[cfg(feature = "schema")]
pub mod schema;
mod schemas;
mod secret;
mod secret_form;
mod string_enum;
mod tier;
mod warning;

pub use calibration_file::{Calibration, CalibrationFile, EvidenceMap, LogisticMap, ScoreCount, ScoreTotal};
pub use capability::{Capabilities, Dialect, Modality, SPECIFICATION, Transport};
pub use check::{CheckRule, CheckSeverity};
pub use chunk::{Checkpoint, Chunk, Progress, Recovery, ViolationNote};
pub use code::{Category, Code, ErrorCode, Recoverable};
pub use composition::{
    Aggregate, Composition, DataflowStep, IterationRule, PartAnswer, PartError, PartProgress, PartReport,
    PartStatus, Pattern, Requirement, RoutingRule,
};
pub use confidence::{
    BelowGate, CalibrationReport, ConfidenceRule, ConfidenceSource, GateReport, GateRule, RequiredSource,
};
pub use cost::{Amount, CacheHit, Cost, Currency, PriceDate, PriceSource};
pub use envelope::{DataError, Envelope, ErrorBody, ErrorOrigin, Outcome};
pub use event::{FinishReason, ModelEvent, ModelMedia, TokenProbability, ToolCallDelta, Usage};
pub use evidence::{
    Agreement, EvidenceError, EvidenceRequest, EvidenceRule, GroundedText, Grounding, Judgement, PassedChecks,
};
pub use form::{Ask, Form, RationalePlace, Subject, Wording};
pub use forms_file::{FormsFile, MeasuredForm};
pub use generation::{Effort, Generation, ServiceTier, Verbosity};
pub use manifest::{
    AcceptedContext, Compat, Constraints, ContextRule, ContextTtl, DeniedPolicies, EmittedContext, Enums,
    Failure, Format, Invocation, IoPointers, Manifest, MediaConstraints, Modalities, Overflow, Policies,
    Requirements, Response, ToolRules,
};
pub use meta::{Evidence, Fallback, FieldProbabilities, Meta, RUNTIME_KEYS, Repair, RepairRule, RuntimeMeta};
pub use risk::{Risk, RiskRule, RiskValue};
pub use schemas::Schema;
pub use secret::Secret;
pub use secret_form::{is_secret_list_name, is_secret_name, mask_secrets};
pub use string_enum::ParseEnumError;
pub use tier::{ChunkType, EnumStrategy, OnViolation, ResponseMode, Strictness, Tier};
pub use warning::{Warning, WarningCode};
