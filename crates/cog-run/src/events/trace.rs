//! The messages of a run with their metadata (appendix A.6).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use cog_harmony::{Conversation, Latency, Message, Metadata, Part, RefusalPart, SafetyCheck};
use cog_spec::{FinishReason, ModelEvent, Usage};
use tokio::time::Instant;

use super::{Listeners, Needs, RunEvents};
use crate::clock;

/// The messages of a run, in order: the request, each reply, each result of a tool, and the answer. Each has
/// metadata (appendix A.6). All clones contain the same messages.
///
/// It is a listener of one run: [`RunOptions::events`](crate::RunOptions::events).
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<Message>>>);

impl Trace {
    /// Returns the messages so far.
    pub fn messages(&self) -> Conversation {
        Conversation(self.lock().clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunEvents for Trace {
    fn needs(&self) -> Needs {
        Needs { messages: true, ..Needs::default() }
    }

    fn request_messages(&self, messages: &[Message]) {
        *self.lock() = messages.to_vec();
    }

    fn message(&self, message: &Message) {
        self.lock().push(message.clone());
    }
}

/// Adds metadata to the messages of one run, and reports them.
pub(crate) struct Recorder {
    listeners: Listeners,
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
    /// Returns the recorder of a run; none if no listener needs messages.
    pub(crate) fn new(listeners: &Listeners, session_id: &str, trace_id: Option<&str>) -> Option<Box<Self>> {
        let context = message_metadata(listeners, session_id, trace_id)?;
        listeners.iter().for_each(|one| one.request_messages(&[]));
        let listeners = listeners.clone();
        let has_recorded = false;
        Some(Box::new(Self { listeners, context, has_recorded, reply: None }))
    }

    /// Records the messages of a request to the model, unless they were recorded as they were created.
    pub(crate) fn begin(&mut self, messages: &Conversation) {
        if !self.has_recorded {
            // A run that continues creates its first messages again, before those of the halted run.
            let start = messages.0.iter().filter_map(started_at).fold(now(), f64::min);
            let mut dated = messages.0.clone();
            dated.iter_mut().for_each(|message| message.created_at = message.created_at.or(Some(start)));
            let messages: Vec<Message> = dated.into_iter().map(|message| self.completed(message)).collect();
            self.listeners.iter().for_each(|one| one.request_messages(&messages));
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
    pub(crate) fn end_reply(
        &mut self,
        model: Option<&str>,
        usage: Option<&Usage>,
        mut message: Message,
    ) -> Message {
        let Some(reply) = self.reply.take() else { return message };
        if message.content.is_empty() && message.tool_calls.is_empty() {
            message.content = reply.content();
        }
        let metadata = Metadata {
            latency_ms: Some(Latency {
                ttft: reply.first_token.map(milliseconds),
                total_time: milliseconds(reply.started.elapsed()),
            }),
            model_version: model.map(str::to_owned),
            system_fingerprint: reply.fingerprint.clone(),
            safety_check: Some(reply.safety_check()),
            ..self.context.clone()
        };
        message.metadata = Some(metadata.with_usage(usage).to_value());
        message.created_at = Some(now());
        self.add(message.clone());
        message
    }

    /// Records a message that follows those before.
    pub(crate) fn add(&mut self, message: Message) {
        self.has_recorded = true;
        let message = self.completed(message);
        self.listeners.iter().for_each(|one| one.message(&message));
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
            ModelEvent::Tokens(_) | ModelEvent::ReasoningItem(_) | ModelEvent::Usage(_) => {}
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

/// Returns the metadata that every message of a run has; none if no listener needs messages.
pub(crate) fn message_metadata(
    listeners: &Listeners,
    session_id: &str,
    trace_id: Option<&str>,
) -> Option<Metadata> {
    listeners.needs().messages.then(|| Metadata {
        session_id: Some(session_id.to_owned()),
        trace_id: trace_id.map(str::to_owned),
        ..Metadata::default()
    })
}

/// Adds the metadata of a run to the message with the result of a tool, which continues with it if the run is halted.
pub(crate) fn complete_result(
    message: Message,
    metadata: Metadata,
    usage: Option<&Usage>,
    time: &CallTime,
) -> Message {
    let latency = Latency { ttft: None, total_time: milliseconds(time.elapsed) };
    let metadata = Metadata { latency_ms: Some(latency), ..metadata };
    let metadata = if usage.is_some() { metadata.with_usage(usage) } else { metadata };
    Message { metadata: Some(metadata.to_value()), created_at: Some(time.ended_at), ..message }
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
