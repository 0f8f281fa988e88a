//! Records the messages of a run in its [`Trace`].

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use cog_answer::Assembler;
use cog_harmony::{Conversation, Latency, Message, Metadata, Part, RefusalPart, SafetyCheck};
use cog_spec::{FinishReason, ModelEvent, Usage};
use tokio::time::Instant;

use crate::clock;

/// Records the messages of one run in a [`Trace`].
pub(crate) struct Recorder {
    trace: Trace,
    /// The session and the trace of the run.
    context: Metadata,
    /// Whether a reply is recorded; before it, a fallback provider may receive another request.
    has_recorded: bool,
    reply: Option<Reply>,
}

/// The reply that is being read.
struct Reply {
    started: Instant,
    first_token: Option<Duration>,
    text: String,
    fingerprint: Option<String>,
    finish: Option<FinishReason>,
    /// Whether an event arrived.
    has_started: bool,
}

impl Recorder {
    /// Returns the recorder of a run; none if its options request no trace.
    pub(crate) fn new(trace: Option<&Trace>, session_id: &str, trace_id: Option<&str>) -> Option<Box<Self>> {
        let trace = trace?.clone();
        trace.set(Vec::new());
        let context = metadata(session_id, trace_id);
        Some(Box::new(Self { trace, context, has_recorded: false, reply: None }))
    }

    /// Records the messages of a request to the model, unless they were recorded as they were created.
    pub(crate) fn begin(&mut self, messages: &Conversation) {
        if !self.has_recorded {
            // A run that continues creates its first messages again, before those of the halted run.
            let start = messages.0.iter().filter_map(started_at).fold(now(), f64::min);
            let dated = |message: Message| Message {
                created_at: message.created_at.or(Some(start)),
                ..self.completed(message)
            };
            self.trace.set(messages.0.iter().cloned().map(dated).collect());
        }
        self.reply = Some(Reply::new());
    }

    /// Observes an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        if let Some(reply) = &mut self.reply {
            reply.observe(event);
        }
    }

    /// Whether a reply has started that is not recorded.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.has_started)
    }

    /// Records the message of the reply, and returns it with its metadata. Without content and tool calls it is the text
    /// that arrived.
    pub(crate) fn end_reply(&mut self, assembler: &Assembler, mut message: Message) -> Message {
        let Some(reply) = self.reply.take() else { return message };
        if message.content.is_empty() && message.tool_calls.is_empty() {
            message.content = reply.content();
        }
        let metadata = Metadata {
            latency_ms: Some(Latency {
                ttft: reply.first_token.map(milliseconds),
                total_time: milliseconds(reply.started.elapsed()),
            }),
            model_version: assembler.model().map(str::to_owned),
            system_fingerprint: reply.fingerprint.clone(),
            safety_check: Some(reply.safety_check()),
            ..self.context.clone()
        };
        message.metadata = Some(metadata.with_usage(assembler.reply_usage().as_ref()).to_value());
        message.created_at = Some(now());
        self.add([message.clone()]);
        message
    }

    /// Records messages that follow those before.
    pub(crate) fn add(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.has_recorded = true;
        self.trace.extend(messages.into_iter().map(|message| self.completed(message)));
    }

    /// Returns a message with the metadata of the run, if it has none.
    fn completed(&self, message: Message) -> Message {
        Message {
            metadata: message.metadata.or_else(|| Some(self.context.to_value())),
            created_at: message.created_at.or_else(|| Some(now())),
            ..message
        }
    }
}

impl Reply {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            first_token: None,
            text: String::new(),
            fingerprint: None,
            finish: None,
            has_started: false,
        }
    }

    fn observe(&mut self, event: &ModelEvent) {
        self.has_started = true;
        match event {
            ModelEvent::Started { fingerprint, .. } => self.fingerprint.clone_from(fingerprint),
            ModelEvent::Text(text) => {
                self.text.push_str(text);
                self.set_first_token();
            }
            ModelEvent::Reasoning(_) | ModelEvent::ToolCall(_) | ModelEvent::Media(_) => {
                self.set_first_token();
            }
            ModelEvent::Finished(reason) => self.finish = Some(reason.clone()),
            ModelEvent::ReasoningItem(_) | ModelEvent::Usage(_) => {}
        }
    }

    fn set_first_token(&mut self) {
        self.first_token.get_or_insert_with(|| self.started.elapsed());
    }

    /// Returns the text of the reply, and the explanation of a refusal if the text does not contain it.
    fn content(&self) -> Vec<Part> {
        let refusal = match &self.finish {
            Some(FinishReason::Refusal(Some(text))) if !self.text.contains(text.as_str()) => {
                Some(Part::Refusal(RefusalPart { refusal: text.clone(), other: None }))
            }
            _ => None,
        };
        let text =
            Some(Part::text(self.text.as_str())).filter(|_| refusal.is_none() || !self.text.is_empty());
        text.into_iter().chain(refusal).collect()
    }

    fn safety_check(&self) -> SafetyCheck {
        let category = match self.finish {
            Some(FinishReason::ContentFilter) => Some("content_filter"),
            Some(FinishReason::Refusal(_)) => Some("refusal"),
            _ => None,
        };
        SafetyCheck {
            flagged: category.is_some(),
            categories: category.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// When a call of a tool ended, and how long it took.
pub(crate) struct CallTime {
    ended_at: f64,
    elapsed: Duration,
}

impl CallTime {
    /// Returns the time of a call that ends now.
    pub(crate) fn since(started: Instant) -> Self {
        Self { ended_at: now(), elapsed: started.elapsed() }
    }
}

/// Returns the message with the result of a tool, with this metadata of its run.
pub(crate) fn result(
    metadata: Metadata,
    message: Message,
    usage: Option<&Usage>,
    time: &CallTime,
) -> Message {
    let latency = Latency { ttft: None, total_time: milliseconds(time.elapsed) };
    let metadata = Metadata { latency_ms: Some(latency), ..metadata };
    let metadata = if usage.is_some() { metadata.with_usage(usage) } else { metadata };
    Message { metadata: Some(metadata.to_value()), created_at: Some(time.ended_at), ..message }
}

/// Returns the metadata that all messages of a run have.
pub(crate) fn metadata(session_id: &str, trace_id: Option<&str>) -> Metadata {
    Metadata {
        session_id: Some(session_id.to_owned()),
        trace_id: trace_id.map(str::to_owned),
        ..Metadata::default()
    }
}

/// Returns the time at which a model or a tool began to create a message, if it is known.
fn started_at(message: &Message) -> Option<f64> {
    let metadata = message.metadata.as_ref();
    let duration = metadata.and_then(|metadata| metadata.get("latency_ms")?.get("total_time")?.as_f64());
    Some(message.created_at? - duration.unwrap_or_default() / 1000.0)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time as Unix time in seconds, in steps of a millisecond.
fn now() -> f64 {
    let time = clock::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(milliseconds(time)).as_secs_f64()
}

// The messages of a run with their metadata (appendix A.6).

/// The messages of a run, in order: the request, each reply, each result of a tool, and the answer. Each has
/// metadata (appendix A.6). All clones contain the same messages.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<Message>>>);

impl Trace {
    /// Returns a trace without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> Conversation {
        Conversation(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    pub(crate) fn set(&self, messages: Vec<Message>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = messages;
    }

    pub(crate) fn extend(&self, messages: impl Iterator<Item = Message>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(messages);
    }
}
