//! Spans: what ran, when, and within what. A [`Tracer`] receives each one when it ends (docs/telemetry.md).
//!
//! A run is a span, and so are its calls to models, its calls of tools, and the runs of its parts. Each span belongs to the one
//! that started it, and the first one to that of the caller ([`RunContext::parent_span`]).
//!
//! [`RunContext::parent_span`]: crate::RunContext::parent_span

mod call;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use cog_harmony::{Conversation, ToolCall};
use cog_json::Value;
use cog_spec::{FinishReason, Manifest, Meta, Modality, Usage};
use tokio::time::Instant;

pub(crate) use self::call::{OpenCall, OpenRun, OpenTool, RunEnd};
pub use crate::trace_context::SpanContext;
use crate::{CallOutcome, Ended, clock};

/// Gives spans their identity, and receives them when they end.
pub trait Tracer: Send + Sync {
    /// Returns the context of a span that starts now. Without a parent, it is the first of a new trace.
    fn start(&self, parent: Option<&SpanContext>) -> SpanContext;

    /// Returns whether spans contain inputs, messages and answers.
    fn records_content(&self) -> bool {
        false
    }

    /// A span has ended, also one that is not sampled. This is called within the run, so it must return quickly.
    fn ended(&self, span: &Span<'_>);
}

/// A span that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The identity of the span.
    pub context: &'a SpanContext,
    /// The span that started it.
    pub parent: Option<&'a SpanContext>,
    /// When it started.
    pub started: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// What ran.
    pub work: Work<'a>,
}

/// What ran in a span.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Work<'a> {
    /// A run of a module: of a caller, of a part of a composition, or of a module that is called as a tool.
    Run(RunWork<'a>),
    /// A call to a model, with its retries.
    Call(CallWork<'a>),
    /// A call of a tool.
    Tool(ToolWork<'a>),
}

/// A run of a module.
#[derive(Debug, Clone, Copy)]
pub struct RunWork<'a> {
    /// The manifest of the module.
    pub manifest: &'a Manifest,
    /// The session of the run; empty if it was refused.
    pub session_id: &'a str,
    /// The outcome, the tokens and the numbers of attempts and repairs.
    pub end: Ended<'a>,
    /// The control plane of a successful answer.
    pub meta: Option<&'a Meta>,
    /// The input, if content is recorded.
    pub input: Option<&'a Value>,
    /// The data of a successful answer, if content is recorded.
    pub output: Option<&'a Value>,
    /// The message of the error, if content is recorded.
    pub message: Option<&'a str>,
}

/// A call to a model.
#[derive(Debug, Clone, Copy)]
pub struct CallWork<'a> {
    /// The name of the provider.
    pub provider: &'a str,
    /// The model of the request.
    pub model: &'a str,
    /// The model that replied, as the provider names it.
    pub response_model: Option<&'a str>,
    /// The provider's identifier of the reply.
    pub response_id: Option<&'a str>,
    /// The temperature of the request.
    pub temperature: Option<f64>,
    /// The maximum number of output tokens.
    pub max_tokens: Option<u64>,
    /// The seed of the request.
    pub seed: Option<i64>,
    /// The media that the model generates.
    pub output_media: &'a [Modality],
    /// The outcome of the call.
    pub outcome: CallOutcome,
    /// Why the model stopped.
    pub finish: Option<&'a FinishReason>,
    /// The tokens of the reply, with its cost.
    pub usage: Option<&'a Usage>,
    /// The time to the first part of the reply.
    pub first_chunk: Option<Duration>,
    /// The messages of the request, if content is recorded.
    pub input: Option<&'a Conversation>,
    /// The text of the reply, if content is recorded.
    pub output: Option<&'a str>,
    /// The tool calls of the reply, if content is recorded.
    pub tool_calls: &'a [ToolCall],
}

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolWork<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The identifier of the call.
    pub call_id: &'a str,
    /// The outcome of the call.
    pub outcome: ToolOutcome<'a>,
    /// The arguments as JSON, if content is recorded.
    pub arguments: Option<&'a str>,
    /// The result for the model, if content is recorded.
    pub result: Option<&'a str>,
}

/// The outcome of a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolOutcome<'a> {
    /// The tool returned a result.
    Returned,
    /// The call failed, with the code or the type of the error.
    Failed(&'a str),
    /// The call waits for a confirmation.
    Halted,
    /// The run ended before the call.
    Dropped,
}

// A span that has not ended.

/// Where the spans of a run belong.
#[derive(Clone)]
pub(crate) struct SpanScope {
    tracer: Arc<dyn Tracer>,
    /// The span of the run.
    parent: Option<SpanContext>,
}

impl SpanScope {
    /// Returns the scope of a run, whose span is `parent`; none without a tracer.
    pub(crate) fn new(tracer: Option<&Arc<dyn Tracer>>, parent: Option<&SpanContext>) -> Option<Self> {
        let tracer = Arc::clone(tracer?);
        Some(Self { tracer, parent: parent.cloned() })
    }

    /// Starts a span of the run.
    fn open(&self) -> OpenSpan {
        OpenSpan::start(&self.tracer, self.parent.as_ref())
    }
}

/// A span that has started.
pub(crate) struct OpenSpan {
    tracer: Arc<dyn Tracer>,
    context: SpanContext,
    parent: Option<SpanContext>,
    at: SystemTime,
    started: Instant,
}

impl OpenSpan {
    fn start(tracer: &Arc<dyn Tracer>, parent: Option<&SpanContext>) -> Self {
        let (at, started) = (clock::now(), Instant::now());
        let context = tracer.start(parent);
        Self { tracer: Arc::clone(tracer), context, parent: parent.cloned(), at, started }
    }

    fn records_content(&self) -> bool {
        self.tracer.records_content()
    }

    fn end(&self, work: Work<'_>) {
        self.tracer.ended(&Span {
            context: &self.context,
            parent: self.parent.as_ref(),
            started: self.at,
            duration: self.started.elapsed(),
            work,
        });
    }
}
