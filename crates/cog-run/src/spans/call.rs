//! The span of a call to a model.

use std::{borrow::Cow, time::Duration};

use cog_harmony::{Conversation, ToolCall};
use cog_provider::{ModelRequest, Provider};
use cog_spec::{Code, FinishReason, Modality, ModelEvent, Usage};

use super::{CallWork, SpanScope, Work, open::OpenSpan};
use crate::{CallOutcome, request};

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
            model: request::model_of(request, provider).to_owned(),
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
