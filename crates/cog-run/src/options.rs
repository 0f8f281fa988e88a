//! The options of one run.

mod former;
pub(crate) mod internal;
mod json;
mod setters;

use std::{collections::HashMap, sync::Arc, time::Duration};

use cog_media::{Access, Delivery, Fetched};
use cog_spec::{ChunkType, Generation, OnViolation, Risk, Warning};

use crate::{
    Budget, Cancellation, ContextScope, Trace, approval::Continuation, call_log::CallLog,
    parts_state::FinishedParts, tools::RunTools, trace_context::SpanContext,
};

/// The options of one run. Options that are not set come from the module or the runtime.
///
/// ```
/// use std::time::Duration;
///
/// use cog_run::RunOptions;
///
/// let options = RunOptions::new().model("gpt-5.4-mini").strict(true).timeout(Duration::from_secs(30));
/// assert_eq!(options.model.as_deref(), Some("gpt-5.4-mini"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The provider by name, or several names in call order: `a,b`. None uses the runtime's order.
    pub provider: Option<String>,
    /// The model of the first provider. None uses the provider's default. Fallback providers use their own
    /// models.
    pub model: Option<String>,
    /// Whether every repair is a violation (ruling R26).
    pub strict: bool,
    /// The maximum duration of the run (ruling R40). None uses the runtime's limit.
    pub timeout: Option<Duration>,
    /// The parameters of the generation. They replace those of the runtime and of the manifest.
    pub generation: Generation,
    /// The handling of violations while the answer arrives (ruling R49).
    pub on_violation: Option<OnViolation>,
    /// The maximum number of calls to the model.
    pub max_attempts: Option<u32>,
    /// The way content is streamed (SPEC 2.2). None uses the manifest's value.
    pub chunk_type: Option<ChunkType>,
    /// The number of bytes that are buffered before they are streamed (ruling R47). None uses the manifest's
    /// value.
    pub buffer_size: Option<u64>,
    /// The media that this run may open from its input. None uses the runtime's setting.
    pub media: Option<Access>,
    /// The owner whose uploads the run may open, when uploads have owners.
    pub owner: Option<String>,
    /// The delivery of generated media (SPEC 4.3). Delivered media belong to the owner of the uploads.
    pub delivery: Delivery,
    /// The caller of the run (docs/spec/modules.md, `invocation`).
    pub caller: Caller,
    /// The value of `meta.trace_id`.
    pub trace_id: Option<String>,
    /// The span of the caller, to which the run belongs (docs/telemetry.md). None starts a new trace.
    pub parent_span: Option<SpanContext>,
    /// The handle that cancels the run.
    pub cancellation: Cancellation,
    /// The id of the run's session. None creates a new one.
    pub session_id: Option<String>,
    /// The last `seq` that the client received, when a stream is resumed (docs/spec/streaming.md).
    ///
    /// The model is called again. The new stream names this `seq`, replaces the earlier data by an empty
    /// snapshot, and continues the count.
    pub resume_from: Option<u64>,
    /// The risk of the run. In a run of high risk, every tool that changes something needs a confirmation.
    pub risk: Option<Risk>,
    /// The maximum number of rounds of tool calls, at most that of the runtime.
    pub max_tool_rounds: Option<u32>,
    /// The maximum number of tool calls, at most that of the runtime.
    pub max_tool_calls: Option<u32>,
    /// The tools of this run and of the modules that it calls, beside those of the runtime.
    pub tools: RunTools,
    /// The halted run that this one continues. The input is that of the halted run.
    pub continuation: Option<Continuation>,
    /// The context that the modules of a composition share. None has only the input's own.
    pub context: Option<ContextScope>,
    /// The agent that the run hands over to: `handoff` of the answer becomes its packet, in [`Envelope::handoff`]
    /// (docs/handoff.md).
    ///
    /// [`Envelope::handoff`]: cog_spec::Envelope::handoff
    pub handoff_to: Option<String>,
    /// The budgets that the calls of the run are counted in, in addition to that of the runtime for each run.
    pub budgets: Vec<Budget>,
    /// The messages of the run with their metadata. None records nothing.
    pub trace: Option<Trace>,
    /// The log of the run's tool calls, so that a run that starts again does not repeat them.
    pub(crate) call_log: Option<CallLog>,
    /// The content of URLs and uploads of the input that a run that starts again has stored, by URL or id.
    pub(crate) stored_media: Arc<HashMap<String, Fetched>>,
    /// The modules that call this one as a tool, from the first.
    pub(crate) callers: Vec<String>,
    /// Whether a model calls the module as a tool, or a module of which it is a part. Such a run cannot wait for a confirmation.
    pub(crate) is_tool: bool,
    /// Whether the answer must not be one that was stored, because it is for one of a module whose answers are not.
    pub(crate) is_uncached: bool,
    /// The answers of the parts of an interrupted composition. The run continues from them, and records further ones in its
    /// chunks. None records nothing.
    pub finished_parts: Option<FinishedParts>,
    /// Warnings of the answer in addition to those of the run itself.
    pub warnings: Vec<Warning>,
    /// The recovery offer in the final event of a stream that can be resumed.
    pub recovery: Option<RecoveryOffer>,
}

pub use cog_answer::RecoveryOffer;

/// The caller of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caller {
    /// A user, or a program on behalf of a user: `invocation.user_invocable`.
    #[default]
    User,
    /// A model: `invocation.agent_invocable`.
    Agent,
}
