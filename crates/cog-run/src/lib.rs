#![doc = include_str!("../README.md")]
// A map for those who work on this crate; docs/flow.md follows one run through it. Its modules form no circle (`cargo xtask dag`).
//
// `runtime` is the entry: it loads modules (`modules`) and starts runs. `sessions` keeps the answers of streamed runs, so that
// several readers follow them and an interrupted run starts again.
//
// `pipeline` is the story of one run, in order: the input is checked (`input`, `module_context`), media are opened (`media`),
// the prompt is filled (`prompt`, `compiled`), the form in which the model is asked is chosen (`form`), the request is built
// (`request`, `request_size`), the providers are planned (`plan`, `preflight`), and `drive` takes over. It calls the providers and passes their
// events on; chunks leave through `stream`.
//
// `evidence` puts a run around several: it compares their answers, and collects what else supports the answer.
//
// `composition` executes the plan that `cog-flow` has checked: the parts of a composed module run before its own answer, each
// through the same pipeline. `parts_state` is what is kept of them when the run halts or is interrupted.
//
// `tools` executes the calls of a reply, and halts for a person; `tool` is the interface that a tool implements, and `call_model` the
// model that it may ask. `cache` answers
// an equal request. `offline` answers without a provider.
//
// `runtime_state` is what all runs of a runtime share; only `runtime` and `pipeline` see it, and pass each module what it reads.
// `options` is what a user says of a run, and `context` what surrounds it: its session, its log of calls, the runs that lead to
// it. `budget` limits it, `client_rules` restricts its client, and `events` reports it. `media_files` stores the media of inputs for sessions and halted runs.

mod argument_names;
mod asked_forms;
mod budget;
mod cache;
mod call_log;
mod call_model;
mod cancellation;
mod changes;
mod check;
mod client_rules;
mod clock;
mod compiled;
mod composition;
mod confidence;
mod context;
mod drive;
mod error;
pub mod events;
mod evidence;
pub mod feedback;
mod form;
mod input;
mod media;
mod media_files;
mod module_context;
mod modules;
#[cfg_attr(not(feature = "offline"), path = "offline/absent.rs")]
mod offline;
mod options;
mod parts_state;
mod pipeline;
mod plan;
mod preflight;
mod prompt;
pub mod provider;
mod providers;
mod rendered;
mod request;
mod request_size;
mod runtime;
mod runtime_state;
mod session;
pub mod sessions;
mod stream;
mod tool;
pub mod tools;
mod trace_context;

pub use crate::{
    asked_forms::{AskedForm, AskedForms},
    budget::{Budget, BudgetLimits, BudgetUsage, ClientBudgets},
    cache::{AnswerCache, CacheStats},
    cancellation::{CancelReason, Cancellation},
    check::{AnswerCheck, CheckFuture, CheckViolation},
    client_rules::{ClientRules, ModelAccess},
    context::{RecoveryOffer, RunContext},
    input::RunInput,
    media::citation_source,
    module_context::{ContextLimits, ContextScope, ContextStore},
    modules::ModuleRef,
    options::{Caller, RunOptions},
    providers::Providers,
    rendered::{LargestRun, Rendered, StablePrefix},
    runtime::{Runtime, RuntimeBuilder},
    stream::ChunkStream,
};
// The types of other crates in the public interface, so that a program needs no other dependency.
pub use cog_json::{DeserializeError, Path, SerializeError, SyntaxError, ToJson, Value};
pub use cog_media::{Access, Delivery, FileGuard, MediaError, Uploads, sniff};
#[cfg(feature = "providers")]
pub use cog_media::{AllowRule, FetchLimits, Fetcher, Proxy, UrlGuard};
pub use cog_module::{
    Diagnostic, Finder, LoadError, Module, ModuleFiles, Origin, TrustedDirectories, TrustedDirectory,
    calibration::CalibrationKey,
};
pub use cog_spec::{
    CacheHit, CalibrationReport, Checkpoint, Chunk, ChunkType, Code, ConfidenceSource, Cost, DataError,
    Effort, Envelope, ErrorBody, ErrorCode, EvidenceRequest, Fallback, GateReport, Generation, Manifest,
    Meta, OnViolation, Outcome, PartProgress, PartReport, PartStatus, Progress, Recovery, Repair, Risk,
    RiskValue, RuntimeMeta, ServiceTier, Tier, Verbosity, ViolationNote, Warning, WarningCode,
};
