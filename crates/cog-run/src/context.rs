//! What surrounds a run: the plumbing between it and the program, session, batch or run that started it.

use std::{collections::HashMap, sync::Arc};

pub use cog_answer::RecoveryOffer;
use cog_media::SourceContent;
use cog_spec::{EvidenceRequest, Warning};

use crate::{call_log::CallLog, events::Listeners, parts_state::FinishedParts, trace_context::SpanContext};

/// What surrounds a run. A server, a batch, a session, a composition or the tool loop sets it; the person who wants an answer
/// sets [`RunOptions`](crate::RunOptions).
///
/// [`Runtime::prepare`](crate::Runtime::prepare) accepts one. A program that only runs modules needs none.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunContext {
    /// The span of the caller, to which the run belongs (docs/telemetry.md). None starts a new trace.
    pub parent_span: Option<SpanContext>,
    /// Warnings of the answer in addition to the run's own.
    pub warnings: Vec<Warning>,
    /// The id of the run's session. None creates a new one.
    pub session_id: Option<String>,
    /// The last `seq` that the client received, when a stream is resumed (docs/spec/streaming.md).
    ///
    /// The model is called again. The new stream names this `seq`, replaces the earlier data by an empty
    /// snapshot, and continues the count.
    pub resume_from: Option<u64>,
    /// The recovery offer in the final event of a stream that can be resumed.
    pub recovery: Option<RecoveryOffer>,
    /// Whether nobody reads the chunks of the data as they arrive: only the last chunk contains it. A long answer then takes
    /// less memory.
    pub is_folded: bool,
    /// The answers of the parts of an interrupted composition. The run continues from them, and records further ones in its
    /// chunks. None records nothing.
    pub(crate) finished_parts: Option<FinishedParts>,
    /// The log of the run's tool calls, so that a run that starts again does not repeat them.
    pub(crate) call_log: Option<CallLog>,
    /// The content of URLs and uploads of the input that a run that starts again has stored, by URL or id.
    pub(crate) stored_media: Arc<HashMap<String, SourceContent>>,
    /// The modules that call this one as a tool, from the first.
    pub(crate) callers: Vec<String>,
    /// Whether a model calls the module as a tool, or a module of which it is a part. Such a run cannot wait for a confirmation.
    pub(crate) is_tool: bool,
    /// Whether the run is a part of a composition, or of a module that was called as a tool.
    pub(crate) is_nested: bool,
    /// The listeners of the runtime and of the run.
    pub(crate) listeners: Listeners,
    /// The number of the run among those of one request, whose answers are compared; 0 for the first one.
    pub(crate) sample: u32,
    /// What the run around this one collects about its answer, which then also judges its confidence; none for any other run.
    pub(crate) collected: Option<EvidenceRequest>,
    /// Whether the answer must not be one that was stored: the caller says so, or it is for one of a module whose answers are not.
    pub is_uncached: bool,
    /// Whether the run is one of a calibration: its confidence stays as it is, and no gate refuses its answer.
    pub is_calibration: bool,
}
