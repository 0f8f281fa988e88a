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

mod listeners;
mod open;
mod trace;

use std::time::{Duration, SystemTime};

use cog_harmony::{Conversation, Message, ToolCall};
use cog_json::Value;
use cog_module::Module;
use cog_provider::ReplyHead;
use cog_spec::{Code, ErrorCode, Fallback, FinishReason, Meta, Modality, Usage};

pub use self::trace::Trace;
pub(crate) use self::{
    listeners::{Listeners, RunScope},
    open::{OpenCall, OpenRun, OpenTool},
    trace::{CallTime, Recorder, complete_result, message_metadata},
};
use crate::RunInput;
pub use crate::trace_context::SpanContext;

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
    /// The input, if a listener needs content.
    pub input: Option<&'a RunInput>,
    /// The data of a successful answer, if a listener needs content.
    pub output: Option<&'a Value>,
    /// The message of the error, if a listener needs content.
    pub message: Option<&'a str>,
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
