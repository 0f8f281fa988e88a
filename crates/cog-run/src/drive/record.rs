//! Passes the messages of a run to its tools and its recorder.

use cog_answer::Assembler;
use cog_harmony::{Message, Role};
use cog_spec::ModelEvent;

use super::Driver;

impl Driver {
    /// Passes an event of the reply to the tools, the recorder, the budgets and the cache.
    pub(super) fn observe(&mut self, event: &ModelEvent) {
        if let Some(tools) = &mut self.run.tools {
            tools.observe(event);
        }
        if let Some(recorder) = &mut self.run.recorder {
            recorder.observe(event);
        }
        if let Some(call) = &mut self.counted {
            call.observe(event);
        }
        if let Some(cache) = &mut self.run.cache {
            cache.observe(event);
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
