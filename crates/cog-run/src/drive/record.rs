//! Passes the messages of a run to its tools and its recorder.

use cog_answer::Assembler;
use cog_harmony::{Message, Role};
use cog_spec::{Code, ModelEvent};

use super::Driver;
use crate::{preflight, spans::OpenCall};

impl Driver {
    /// Passes an event of the reply to the tools, the recorder, the budgets and the cache.
    pub(super) fn observe(&mut self, event: &ModelEvent) {
        if let Some(tools) = &mut self.run.tools {
            tools.observe(event);
        }
        if let Some(recorder) = &mut self.run.recorder {
            recorder.observe(event);
        }
        if let Some(span) = &mut self.span {
            span.observe(event);
        }
        if let Some(call) = &mut self.counted {
            call.observe(event);
        }
        if let Some(cache) = &mut self.run.cache {
            cache.observe(event);
        }
    }

    /// Starts the span of a call to a model.
    pub(super) fn open_span(&mut self) {
        let run = &self.run;
        let spans = run.spans.as_ref().filter(|_| preflight::calls_model(run.provider.as_ref()));
        self.span = spans.map(|spans| OpenCall::start(spans, run.provider.as_ref(), &run.request));
    }

    /// Records that the current call failed.
    pub(super) fn fail_span(&mut self, code: Code) {
        if let Some(span) = &mut self.span {
            span.fail(code);
        }
    }

    /// Records the messages of the request.
    pub(super) fn record_request(&mut self) {
        if let Some(recorder) = &mut self.run.recorder {
            recorder.begin(&self.run.request.messages);
        }
    }

    /// Records a reply that requests no tool calls, if there is one.
    pub(super) fn record_answer(&mut self, assembler: &Assembler) {
        if let Some(recorder) = &mut self.run.recorder
            && recorder.has_reply()
        {
            recorder.end_reply(assembler, Message::new(Role::Assistant, Vec::new()));
        }
    }

    /// Records the results of tools.
    pub(super) fn record(&mut self, messages: &[Message]) {
        if let Some(recorder) = &mut self.run.recorder {
            recorder.add(messages.iter().cloned());
        }
    }
}
