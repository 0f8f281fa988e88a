//! The span of a call to a model.

use std::{borrow::Cow, sync::Arc, time::Duration};

use cog_harmony::{Conversation, ToolCall};
use cog_json::Value;
use cog_module::Module;
use cog_provider::{ModelRequest, Provider};
use cog_spec::{Code, ErrorBody, FinishReason, Meta, Modality, ModelEvent, Usage};

use super::{CallWork, OpenSpan, RunWork, SpanContext, SpanScope, ToolOutcome, ToolWork, Tracer, Work};
use crate::{CallOutcome, Ended, RunInput, RunOutcome};

/// The maximum bytes of a reply that a span contains.
const MAX_CONTENT: usize = 1 << 20;

/// The span of a call that has not ended. Dropping it ends it.
pub(crate) struct OpenCall {
    span: OpenSpan,
    provider: Cow<'static, str>,
    model: String,
    request: RequestNote,
    response_model: Option<String>,
    response_id: Option<String>,
    outcome: CallOutcome,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    first_chunk: Option<Duration>,
    content: Option<Box<Content>>,
}

/// What a span contains of the request.
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
    /// Starts the span of a call to a provider.
    pub(crate) fn start(scope: &SpanScope, provider: &dyn Provider, request: &ModelRequest) -> Box<Self> {
        let span = scope.open();
        let content = span.records_content().then(|| {
            let (output, calls) = (String::new(), Vec::new());
            Box::new(Content { input: request.messages.clone(), output, calls })
        });
        let generation = &request.generation;
        Box::new(Self {
            span,
            provider: provider.info().name.clone(),
            model: provider.info().model_or_default(&request.model).to_owned(),
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
            first_chunk: None,
            content,
        })
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
                self.first_chunk.get_or_insert_with(|| self.span.started.elapsed());
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

    /// Records that the call failed.
    pub(crate) fn fail(&mut self, code: Code) {
        self.outcome = CallOutcome::Failed(code);
    }
}

impl Content {
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
        let content = self.content.as_deref_mut();
        let (input, output, calls) = match content {
            Some(Content { input, output, calls }) => {
                (Some(&*input), Some(output.as_str()), std::mem::take(calls))
            }
            None => (None, None, Vec::new()),
        };
        let calls: Vec<ToolCall> = calls.into_iter().map(|(_, call)| call).collect();
        self.span.end(Work::Call(CallWork {
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
            first_chunk: self.first_chunk,
            input,
            output,
            tool_calls: &calls,
        }));
    }
}

// The span of a run.

/// The span of a run that has not ended.
pub(crate) struct OpenRun {
    span: OpenSpan,
    pub(crate) session_id: String,
    input: Option<Value>,
}

/// What an answer adds to the end of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunEnd<'a> {
    pub(crate) meta: Option<&'a Meta>,
    pub(crate) data: Option<&'a Value>,
    pub(crate) message: Option<&'a str>,
}

impl OpenRun {
    /// Starts the span of a run.
    pub(crate) fn start(tracer: &Arc<dyn Tracer>, parent: Option<&SpanContext>, input: &RunInput) -> Self {
        let span = OpenSpan::start(tracer, parent);
        let input = span.records_content().then(|| content(input));
        Self { span, session_id: String::new(), input }
    }

    /// Returns the identity of the span, to which the spans of the run belong.
    pub(crate) fn context(&self) -> &SpanContext {
        &self.span.context
    }

    /// Ends the span of a run that was refused before the provider was called.
    pub(crate) fn refused(&self, error: &ErrorBody, module: &Module) {
        let outcome = RunOutcome::Failed(&error.code);
        let end = Ended { module: "", outcome, usage: None, attempts: 0, repairs: 0, fallbacks: &[] };
        let message = Some(error.message.as_str());
        self.end(module, end, RunEnd { message, ..RunEnd::default() });
    }

    pub(crate) fn end(&self, module: &Module, end: Ended<'_>, answer: RunEnd<'_>) {
        let has_content = self.span.records_content();
        self.span.end(Work::Run(RunWork {
            manifest: &module.manifest,
            session_id: &self.session_id,
            end: Ended { module: &module.manifest.name, ..end },
            meta: answer.meta,
            input: self.input.as_ref(),
            output: answer.data.filter(|_| has_content),
            message: answer.message.filter(|_| has_content),
        }));
    }
}

/// Returns the input as JSON: a text, or the fields beside it too.
fn content(input: &RunInput) -> Value {
    match input {
        RunInput::Json(value) => value.clone(),
        RunInput::Args(text) => serde_json::json!(text).into(),
        RunInput::ArgsWith(text, fields) => serde_json::json!([text, fields.to_serde()]).into(),
    }
}

// The span of a call of a tool.

/// The span of a call that has not ended. Dropping it ends it.
pub(crate) struct OpenTool {
    span: OpenSpan,
    name: String,
    call_id: String,
    arguments: Option<String>,
    end: End,
    result: Option<String>,
}

enum End {
    Returned,
    Failed(String),
    Halted,
    Dropped,
}

impl OpenTool {
    /// Starts the span of a call.
    pub(crate) fn start(scope: &SpanScope, call: &ToolCall) -> Self {
        let span = scope.open();
        let arguments = span.records_content().then(|| call.arguments.clone());
        let (name, call_id) = (call.name.clone(), call.id.clone());
        Self { span, name, call_id, arguments, end: End::Dropped, result: None }
    }

    /// Returns the identity of the span, to which the run of a module belongs that is called as a tool.
    pub(crate) fn context(&self) -> &SpanContext {
        &self.span.context
    }

    /// The call waits for a confirmation.
    pub(crate) fn halt(mut self) {
        self.end = End::Halted;
    }

    /// The call has a result, or an error with this code or type.
    pub(crate) fn end(mut self, error: Option<String>, result: impl FnOnce() -> String) {
        self.end = error.map_or(End::Returned, End::Failed);
        self.result = self.span.records_content().then(result);
    }
}

impl Drop for OpenTool {
    fn drop(&mut self) {
        let outcome = match &self.end {
            End::Returned => ToolOutcome::Returned,
            End::Failed(error) => ToolOutcome::Failed(error),
            End::Halted => ToolOutcome::Halted,
            End::Dropped => ToolOutcome::Dropped,
        };
        self.span.end(Work::Tool(ToolWork {
            name: &self.name,
            call_id: &self.call_id,
            outcome,
            arguments: self.arguments.as_deref(),
            result: self.result.as_deref(),
        }));
    }
}
