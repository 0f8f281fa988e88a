//! Runs and calls that have not ended. Each one reports its end when it is dropped, so that none is lost on any exit.

use std::{borrow::Cow, sync::Arc, time::Duration};

use cog_answer::EnvelopeBuilder;
use cog_harmony::{Conversation, ToolCall};
use cog_json::Value;
use cog_module::Module;
use cog_provider::{ModelRequest, ProviderError, ProviderInfo};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, FinishReason, Modality, ModelEvent, Usage};
use tokio::time::Instant;

use super::{
    CallOutcome, CallReport, Listeners, OpenSpan, RunOutcome, RunReport, RunScope, SpanContext, ToolOutcome,
    ToolReport,
};
use crate::RunInput;

/// The maximum bytes of a reply that a report contains.
const MAX_CONTENT: usize = 1 << 20;

/// A run that has not ended.
pub(crate) struct OpenRun {
    listeners: Listeners,
    span: Option<OpenSpan>,
    started: Instant,
    module: Arc<Module>,
    is_nested: bool,
    session_id: String,
    input: Option<RunInput>,
    /// The last meta before the final event (ruling R42). A failure has no other: its tokens and attempts are read from here.
    meta: Option<Value>,
    /// The chunks so far, if a listener needs the envelope.
    envelope: Option<EnvelopeBuilder>,
    has_ended: bool,
}

impl OpenRun {
    /// Starts a run; none without listeners.
    pub(crate) fn start(
        listeners: &Listeners,
        parent: Option<&SpanContext>,
        module: &Arc<Module>,
        input: &RunInput,
        is_nested: bool,
    ) -> Option<Box<Self>> {
        if listeners.is_empty() {
            return None;
        }
        let span = listeners.open_span(parent);
        listeners.run_started(module, is_nested);
        let needs = listeners.needs();
        let input = (needs.content || needs.input).then(|| input.clone());
        let module = Arc::clone(module);
        let session_id = String::new();
        Some(Box::new(Self {
            listeners: listeners.clone(),
            span,
            started: Instant::now(),
            module,
            is_nested,
            session_id,
            input,
            meta: None,
            envelope: needs.envelope.then(EnvelopeBuilder::new),
            has_ended: false,
        }))
    }

    /// Returns the span of the run, which its calls belong to.
    pub(crate) fn span(&self) -> Option<&SpanContext> {
        self.span.as_ref().map(|span| &span.context)
    }

    pub(crate) fn set_session(&mut self, session_id: &str) {
        session_id.clone_into(&mut self.session_id);
    }

    /// Reports a run that was refused before the provider was called.
    pub(crate) fn refused(&mut self, error: &ErrorBody) {
        self.has_ended = true;
        let envelope = self.envelope.take().map(|_| Envelope::failure(error.clone()));
        let outcome = RunOutcome::Failed(&error.code);
        self.report(RunReport {
            attempts: 0,
            message: Some(&error.message),
            envelope: envelope.as_ref(),
            ..self.ended(outcome)
        });
    }

    /// Observes the next chunk of the run, and reports its end with the last one.
    pub(crate) fn observe(&mut self, chunk: &Chunk) {
        if let Some(envelope) = &mut self.envelope {
            envelope.push(chunk.clone());
        }
        match chunk {
            Chunk::Snapshot { field: Some(field), data, .. } if field == "meta" => {
                self.meta = Some(data.clone());
            }
            Chunk::Final { meta, data, usage, .. } => {
                self.has_ended = true;
                let envelope = self.envelope.take().map(EnvelopeBuilder::finish);
                self.report(RunReport {
                    envelope: envelope.as_ref(),
                    usage: usage.as_ref().or(meta.runtime.usage.as_ref()),
                    attempts: meta.runtime.attempts.unwrap_or(1),
                    repairs: meta.runtime.repairs.len(),
                    fallbacks: &meta.runtime.fallbacks,
                    meta: Some(meta),
                    output: Some(data),
                    ..self.ended(RunOutcome::Answered)
                });
            }
            Chunk::Error { error, .. } => {
                self.report_unanswered(RunOutcome::Failed(&error.code), Some(&error.message));
            }
            Chunk::Meta { .. } | Chunk::Delta { .. } | Chunk::Snapshot { .. } | Chunk::Progress(_) => {}
        }
    }

    fn report_unanswered(&mut self, outcome: RunOutcome<'_>, message: Option<&str>) {
        self.has_ended = true;
        let envelope = self.envelope.take().map(EnvelopeBuilder::finish);
        let meta = self.meta.as_ref().map(Value::node);
        let usage = meta.and_then(|meta| meta.get("usage")).and_then(Usage::read);
        let attempts = meta.and_then(|meta| meta.get("attempts")?.as_u64());
        self.report(RunReport {
            usage: usage.as_ref(),
            attempts: attempts.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(1),
            repairs: meta.and_then(|meta| Some(meta.get("repairs")?.len())).unwrap_or(0),
            message,
            envelope: envelope.as_ref(),
            ..self.ended(outcome)
        });
    }

    /// Returns a report without an answer.
    fn ended<'a>(&'a self, outcome: RunOutcome<'a>) -> RunReport<'a> {
        RunReport {
            span: self.span.as_ref().map(OpenSpan::report),
            module: &self.module,
            is_nested: self.is_nested,
            session_id: &self.session_id,
            outcome,
            duration: self.started.elapsed(),
            usage: None,
            attempts: 1,
            repairs: 0,
            fallbacks: &[],
            meta: None,
            input: self.input.as_ref(),
            output: None,
            message: None,
            envelope: None,
        }
    }

    fn report(&self, run: RunReport<'_>) {
        // The answer is at hand anyway, but a listener must not see content that no listener asked for.
        let has_content = self.listeners.needs().content;
        self.listeners.run_ended(&RunReport {
            output: run.output.filter(|_| has_content),
            message: run.message.filter(|_| has_content),
            ..run
        });
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report_unanswered(RunOutcome::Dropped, None);
        }
    }
}

/// A call to a model that has not ended.
pub(crate) struct OpenCall {
    listeners: Listeners,
    span: Option<OpenSpan>,
    started: Instant,
    provider: Cow<'static, str>,
    model: String,
    request: RequestNote,
    response_model: Option<String>,
    response_id: Option<String>,
    outcome: CallOutcome,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    first_token: Option<Duration>,
    content: Option<Box<Content>>,
}

/// What a report contains of the request.
struct RequestNote {
    temperature: Option<f64>,
    max_tokens: Option<u64>,
    seed: Option<i64>,
    media: Vec<Modality>,
}

/// The messages of a call.
struct Content {
    input: Conversation,
    output: String,
    calls: Vec<(u32, ToolCall)>,
}

impl OpenCall {
    /// Starts a call to a provider's model; none without listeners.
    pub(crate) fn start(
        scope: &RunScope,
        provider: &ProviderInfo,
        request: &ModelRequest,
    ) -> Option<Box<Self>> {
        if scope.listeners.is_empty() {
            return None;
        }
        let needs_content = scope.listeners.needs().content;
        let generation = &request.generation;
        Some(Box::new(Self {
            listeners: scope.listeners.clone(),
            span: scope.open_span(),
            started: Instant::now(),
            provider: provider.name.clone(),
            model: provider.model_or_default(&request.model).to_owned(),
            request: RequestNote {
                temperature: generation.temperature,
                max_tokens: generation.max_tokens,
                seed: generation.seed,
                media: request.output_media.clone(),
            },
            response_model: None,
            response_id: None,
            outcome: CallOutcome::Dropped,
            finish: None,
            usage: None,
            first_token: None,
            content: needs_content.then(|| Box::new(Content::new(request))),
        }))
    }

    /// Observes an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Started { model, id, .. } => {
                self.response_model.clone_from(model);
                self.response_id.clone_from(id);
            }
            ModelEvent::Finished(reason) => {
                self.finish = Some(reason.clone());
                self.outcome = CallOutcome::Answered;
            }
            ModelEvent::Usage(_) => {}
            _ => {
                self.first_token.get_or_insert_with(|| self.started.elapsed());
            }
        }
        if let Some(content) = &mut self.content {
            content.observe(event);
        }
    }

    /// Sets the tokens of the reply.
    pub(crate) fn set_usage(&mut self, usage: Option<Usage>) {
        self.usage = usage;
    }

    /// Records that the call failed with an error of the provider.
    pub(crate) fn fail(&mut self, error: &ProviderError) {
        self.outcome = match error {
            ProviderError::CircuitOpen { .. } => CallOutcome::CircuitOpen,
            error if error.was_attempted() => CallOutcome::Failed(error.code()),
            error => CallOutcome::NotSent(error.code()),
        };
    }

    /// Records that the time of the run has passed.
    pub(crate) fn time_out(&mut self) {
        self.outcome = CallOutcome::Failed(Code::StreamTimeout);
    }
}

impl Content {
    fn new(request: &ModelRequest) -> Self {
        Self { input: request.messages.clone(), output: String::new(), calls: Vec::new() }
    }

    fn observe(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) if self.output.len() + text.len() <= MAX_CONTENT => {
                self.output.push_str(text);
            }
            ModelEvent::ToolCall(delta) => {
                let known = self.calls.iter().position(|(index, _)| *index == delta.index);
                let position = known.unwrap_or_else(|| {
                    self.calls.push((delta.index, ToolCall::new("", "", "")));
                    self.calls.len() - 1
                });
                let Some((_, call)) = self.calls.get_mut(position) else { return };
                delta.id.iter().for_each(|id| call.id.clone_from(id));
                delta.name.iter().for_each(|name| call.name.clone_from(name));
                if call.arguments.len() + delta.arguments.len() <= MAX_CONTENT {
                    call.arguments.push_str(&delta.arguments);
                }
            }
            _ => {}
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let content = self.content.take();
        let calls = content.iter().flat_map(|content| &content.calls).map(|(_, call)| call.clone());
        self.listeners.call_ended(&CallReport {
            span: self.span.as_ref().map(OpenSpan::report),
            provider: &self.provider,
            model: &self.model,
            response_model: self.response_model.as_deref(),
            response_id: self.response_id.as_deref(),
            temperature: self.request.temperature,
            max_tokens: self.request.max_tokens,
            seed: self.request.seed,
            output_media: &self.request.media,
            outcome: self.outcome,
            finish: self.finish.as_ref(),
            usage: self.usage.as_ref(),
            first_token: self.first_token,
            duration: self.started.elapsed(),
            input: content.as_ref().map(|content| &content.input),
            output: content.as_ref().map(|content| content.output.as_str()),
            tool_calls: &calls.collect::<Vec<_>>(),
        });
    }
}

/// A call of a tool that has not ended.
pub(crate) struct OpenTool {
    listeners: Listeners,
    span: Option<OpenSpan>,
    name: String,
    call_id: String,
    arguments_sha256: String,
    decision: Option<&'static str>,
    arguments: Option<String>,
    end: ToolEnd,
    result: Option<String>,
}

enum ToolEnd {
    Returned,
    Failed(String),
    Halted,
    Dropped,
}

impl OpenTool {
    /// Starts a call, with what was decided about it and the hash of its arguments; none without listeners.
    pub(crate) fn start(
        scope: &RunScope,
        call: &ToolCall,
        decision: Option<&'static str>,
        arguments_sha256: impl FnOnce() -> String,
    ) -> Option<Self> {
        if scope.listeners.is_empty() {
            return None;
        }
        Some(Self {
            listeners: scope.listeners.clone(),
            span: scope.open_span(),
            name: call.name.clone(),
            call_id: call.id.clone(),
            arguments_sha256: arguments_sha256(),
            decision,
            arguments: scope.listeners.needs().content.then(|| call.arguments.clone()),
            end: ToolEnd::Dropped,
            result: None,
        })
    }

    /// Returns the span of the call, which the run of a module belongs to that is called as a tool.
    pub(crate) fn span(&self) -> Option<&SpanContext> {
        self.span.as_ref().map(|span| &span.context)
    }

    /// The call waits for a confirmation.
    pub(crate) fn halt(mut self) {
        self.end = ToolEnd::Halted;
    }

    /// The call has a result, or an error with this code or type.
    pub(crate) fn end(mut self, error: Option<String>, result: impl FnOnce() -> String) {
        self.end = error.map_or(ToolEnd::Returned, ToolEnd::Failed);
        self.result = self.listeners.needs().content.then(result);
    }
}

impl Drop for OpenTool {
    fn drop(&mut self) {
        let outcome = match &self.end {
            ToolEnd::Returned => ToolOutcome::Returned,
            ToolEnd::Failed(error) => ToolOutcome::Failed(error),
            ToolEnd::Halted => ToolOutcome::Halted,
            ToolEnd::Dropped => ToolOutcome::Dropped,
        };
        self.listeners.tool_ended(&ToolReport {
            span: self.span.as_ref().map(OpenSpan::report),
            name: &self.name,
            call_id: &self.call_id,
            arguments_sha256: &self.arguments_sha256,
            decision: self.decision,
            outcome,
            arguments: self.arguments.as_deref(),
            result: self.result.as_deref(),
        });
    }
}
