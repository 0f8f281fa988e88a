//! What happens in runs, for everything that watches them: metrics, spans, the pace of a batch, a trace, a log.
//!
//! [`RunEvents`] is implemented by a listener, which is registered for all runs of a runtime with [`RuntimeBuilder::events`], or for
//! one run with [`RunOptions::events`].
//!
//! A run is a span, and so are its calls to models, its calls of tools, and the runs of its parts. Each span belongs to the one
//! that started it, and the first one to the span of the caller ([`RunContext::parent_span`], docs/telemetry.md).
//!
//! [`RuntimeBuilder::events`]: crate::RuntimeBuilder::events
//! [`RunOptions::events`]: crate::RunOptions::events
//! [`RunContext::parent_span`]: crate::RunContext::parent_span

mod open;
mod trace;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use cog_harmony::{Conversation, Message, ToolCall};
use cog_json::Value;
use cog_module::Module;
use cog_provider::{ProviderInfo, ReplyHead, ReplyHook, RetryHook};
use cog_spec::{Code, Envelope, ErrorCode, Fallback, FinishReason, Meta, Modality, Usage};
use tokio::time::Instant;

pub use self::trace::Trace;
pub(crate) use self::{
    open::{OpenCall, OpenRun, OpenTool},
    trace::{CallTime, Recorder, complete_result, message_metadata},
};
pub use crate::trace_context::SpanContext;
use crate::{RunInput, clock};

/// A listener: it learns what happens in runs. Each method does nothing by default.
///
/// The methods are called within the run, so they must return quickly. Several listeners are called in the order in which they
/// were registered.
///
/// ```
/// use std::sync::Arc;
///
/// use cog_run::{Runtime, events::{CallReport, RunEvents}};
///
/// struct Calls;
///
/// impl RunEvents for Calls {
///     fn call_ended(&self, call: &CallReport<'_>) {
///         eprintln!("{}/{}: {:?}", call.provider, call.model, call.outcome);
///     }
/// }
///
/// let builder = Runtime::builder().events(Arc::new(Calls));
/// # let _ = builder;
/// ```
pub trait RunEvents: Send + Sync {
    /// Returns what this listener needs. The runtime asks once, when the listener is registered.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns whether this listener records the spans of a trace. It is asked at the start of each span, if it needs spans.
    fn samples(&self, _parent: Option<&SpanContext>, _trace_id: [u8; 16]) -> bool {
        true
    }

    /// The head of a provider's reply has arrived, also of one that reports an error.
    fn reply_head(&self, _head: &ReplyHead) {}

    /// An attempt to call a provider failed with this code, and is repeated within the same call.
    fn call_retried(&self, _provider: &str, _code: Code) {}

    /// A call to a model has ended, or was not sent.
    fn call_ended(&self, _call: &CallReport<'_>) {}

    /// A call of a tool has ended, or waits for a confirmation.
    fn tool_ended(&self, _tool: &ToolReport<'_>) {}

    /// A run has started. [`RunEvents::run_ended`] follows for each.
    fn run_started(&self, _module: &Module, _is_nested: bool) {}

    /// A run has ended, or was refused before the provider was called.
    fn run_ended(&self, _run: &RunReport<'_>) {}

    /// The messages of the first request, before it is sent. They replace those before: a fallback provider may receive others.
    /// A run begins with none.
    fn request_messages(&self, _messages: &[Message]) {}

    /// A message follows: a reply, the result of a tool, or the correction of an answer. It has metadata (appendix A.6).
    fn message(&self, _message: &Message) {}
}

/// What a listener needs besides names and numbers. The runtime creates nothing that no listener needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Reports have spans.
    pub spans: bool,
    /// Reports contain inputs, messages and answers, if any listener needs them.
    pub content: bool,
    /// [`RunEvents::request_messages`] and [`RunEvents::message`] are called.
    pub messages: bool,
    /// Reports of runs have envelopes.
    pub envelope: bool,
    /// Reports of runs have inputs, also without content.
    pub input: bool,
    /// Answers name their trace in `meta.trace_id`, also if no listener samples it.
    pub trace_id: bool,
}

/// The time of a run, a call to a model or a call of a tool, and its place among the others.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The identity of the span.
    pub context: &'a SpanContext,
    /// The span that started it.
    pub parent: Option<&'a SpanContext>,
    /// The time of its start.
    pub started: SystemTime,
    /// The time from its start to its end.
    pub duration: Duration,
}

/// A run that has ended.
#[derive(Debug, Clone, Copy)]
pub struct RunReport<'a> {
    /// The span of the run; none if no listener needs spans.
    pub span: Option<Span<'a>>,
    /// The module.
    pub module: &'a Module,
    /// Whether the run is a part of a composition, or of a module that was called as a tool.
    pub is_nested: bool,
    /// The session of the run; empty if it was refused.
    pub session_id: &'a str,
    /// The outcome of the run.
    pub outcome: RunOutcome<'a>,
    /// The time from its start to its end.
    pub duration: Duration,
    /// The tokens of all attempts, when known.
    pub usage: Option<&'a Usage>,
    /// The number of calls to the model.
    pub attempts: u32,
    /// The number of repairs of the answer.
    pub repairs: usize,
    /// The providers that failed before the one that answered.
    pub fallbacks: &'a [Fallback],
    /// The control plane of a successful answer.
    pub meta: Option<&'a Meta>,
    /// The input, if a listener needs it or content.
    pub input: Option<&'a RunInput>,
    /// The data of a successful answer, if a listener needs content.
    pub output: Option<&'a Value>,
    /// The message of the error, if a listener needs content.
    pub message: Option<&'a str>,
    /// The envelope of the run, if a listener needs envelopes.
    pub envelope: Option<&'a Envelope>,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome<'a> {
    /// The run returned an answer.
    Answered,
    /// The run returned an error.
    Failed(&'a ErrorCode),
    /// The stream was dropped before its last chunk.
    Dropped,
}

/// A call to a model that has ended, with its retries.
#[derive(Debug, Clone, Copy)]
pub struct CallReport<'a> {
    /// The span of the call; none if no listener needs spans.
    pub span: Option<Span<'a>>,
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
    /// The time from the first attempt to the first part of the reply.
    pub first_token: Option<Duration>,
    /// The time from the first attempt to the end of the reply.
    pub duration: Duration,
    /// The messages of the request, if a listener needs content.
    pub input: Option<&'a Conversation>,
    /// The text of the reply, if a listener needs content.
    pub output: Option<&'a str>,
    /// The tool calls of the reply, if a listener needs content.
    pub tool_calls: &'a [ToolCall],
}

/// The outcome of a call to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The reply is complete.
    Answered,
    /// The provider or the connection to it failed.
    Failed(Code),
    /// Nothing was sent: the configuration is invalid, or the provider does not support the request.
    NotSent(Code),
    /// Nothing was sent, because the circuit of the provider is open.
    CircuitOpen,
    /// The run needed no more of the reply: it was cancelled, or stopped at a violation.
    Dropped,
}

/// A call of a tool that has ended.
#[derive(Debug, Clone, Copy)]
pub struct ToolReport<'a> {
    /// The span of the call; none if no listener needs spans.
    pub span: Option<Span<'a>>,
    /// The name of the tool.
    pub name: &'a str,
    /// The identifier of the call.
    pub call_id: &'a str,
    /// The SHA-256 of the arguments in hexadecimal.
    pub arguments_sha256: &'a str,
    /// What a person decided about a call that was halted: `confirmed`, `denied`, or `waiting`.
    pub decision: Option<&'a str>,
    /// The outcome of the call.
    pub outcome: ToolOutcome<'a>,
    /// The arguments as JSON, if a listener needs content.
    pub arguments: Option<&'a str>,
    /// The result for the model, if a listener needs content.
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

// The listeners of a run, and the spans that are created for them.

/// The listeners of a run, in order. Without any, nothing is created for them.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    /// What at least one of them needs.
    needs: Needs,
    all: Option<Arc<[Arc<dyn RunEvents>]>>,
}

impl Listeners {
    /// Returns these listeners and further ones.
    pub(crate) fn with(&self, more: &[Arc<dyn RunEvents>]) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        let all: Arc<[_]> = self.iter().chain(more).cloned().collect();
        let needs = all.iter().map(|one| one.needs()).fold(Needs::default(), |all, one| Needs {
            spans: all.spans || one.spans,
            content: all.content || one.content,
            messages: all.messages || one.messages,
            envelope: all.envelope || one.envelope,
            input: all.input || one.input,
            trace_id: all.trace_id || one.trace_id,
        });
        Self { needs, all: Some(all) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_none()
    }

    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<dyn RunEvents>> {
        self.all.iter().flat_map(|all| all.iter())
    }

    /// Returns a hook that reports each attempt that a provider retries, if `is_allowed` allows the retry.
    pub(crate) fn retry_hook(
        &self,
        provider: &ProviderInfo,
        is_allowed: impl Fn() -> bool + Send + Sync + 'static,
    ) -> RetryHook {
        let listeners = self.clone();
        let name = provider.name.clone();
        RetryHook::new(move |code| {
            let is_allowed = is_allowed();
            if is_allowed {
                listeners.iter().for_each(|one| one.call_retried(&name, code));
            }
            is_allowed
        })
    }

    /// Returns a hook that reports the head of each reply; none without listeners.
    pub(crate) fn reply_hook(&self) -> Option<ReplyHook> {
        if self.is_empty() {
            return None;
        }
        let listeners = self.clone();
        Some(ReplyHook::new(move |head| listeners.iter().for_each(|one| one.reply_head(head))))
    }

    fn run_started(&self, module: &Module, is_nested: bool) {
        self.iter().for_each(|one| one.run_started(module, is_nested));
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.iter().for_each(|one| one.run_ended(run));
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        self.iter().for_each(|one| one.call_ended(call));
    }

    fn tool_ended(&self, tool: &ToolReport<'_>) {
        self.iter().for_each(|one| one.tool_ended(tool));
    }

    /// Starts a span. Without a parent, it is the first of a new trace. None if no listener needs spans or
    /// the name of the trace.
    fn open_span(&self, parent: Option<&SpanContext>) -> Option<OpenSpan> {
        if !self.needs.spans && !self.needs.trace_id {
            return None;
        }
        let started_at = clock::now();
        let started = Instant::now();
        let mut context = SpanContext::new(parent)?;
        let mut recording = self.iter().filter(|one| one.needs().spans);
        context.is_sampled = recording.any(|one| one.samples(parent, context.trace_id));
        Some(OpenSpan { context, parent: parent.cloned(), started_at, started })
    }
}

impl fmt::Debug for dyn RunEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a listener")
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.iter().count())
    }
}

/// The listeners of a run, and the span that its calls belong to.
#[derive(Clone, Default)]
pub(crate) struct RunScope {
    pub(crate) listeners: Listeners,
    /// The span of the run, or of its caller if no listener needs spans.
    pub(crate) span: Option<SpanContext>,
}

impl RunScope {
    /// Starts a span of the run.
    fn open_span(&self) -> Option<OpenSpan> {
        self.listeners.open_span(self.span.as_ref())
    }
}

/// A span that has started.
struct OpenSpan {
    context: SpanContext,
    parent: Option<SpanContext>,
    started_at: SystemTime,
    started: Instant,
}

impl OpenSpan {
    /// Returns the span up to now.
    fn report(&self) -> Span<'_> {
        Span {
            context: &self.context,
            parent: self.parent.as_ref(),
            started: self.started_at,
            duration: self.started.elapsed(),
        }
    }
}
