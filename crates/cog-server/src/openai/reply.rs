//! What both interfaces return: a complete answer, or its events.

use cog_json::Writer;
use cog_spec::{Meta, Warning};

use super::error::OpenAiError;

/// Writes answers in the form of one interface.
pub(super) trait Reply: Send {
    /// Writes the body of a complete answer.
    fn complete(&self, answer: &Answer<'_>, w: &mut Writer<'_>);
    /// Begins a stream.
    fn begin(&mut self, events: &mut Events);
    /// Adds a part of the text.
    fn text(&mut self, delta: &str, events: &mut Events);
    /// Ends the stream of a successful run.
    fn end(&mut self, answer: &Answer<'_>, events: &mut Events);
    /// Ends the stream of a run that fails.
    fn fail(&mut self, error: &OpenAiError, events: &mut Events);
}

/// What is known before the run.
pub(super) struct Head {
    /// The id of the request.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// The id of the model.
    pub(super) model: String,
    /// Whether the stream of a chat completion ends with the tokens.
    pub(super) include_usage: bool,
}

/// A checked answer.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    /// The data as JSON text.
    pub(super) text: &'a str,
    /// The meta, with the tokens of the run.
    pub(super) meta: &'a Meta,
    pub(super) warnings: &'a [Warning],
}

impl Answer<'_> {
    /// Writes the control plane of the envelope, which OpenAI's forms have no place for.
    pub(super) fn write_control(&self, w: &mut Writer<'_>) {
        w.key("cognitive").object(|w| {
            w.field("meta", self.meta);
            if !self.warnings.is_empty() {
                w.field("_warnings", self.warnings);
            }
        });
    }
}

/// Server-sent events.
#[derive(Debug, Default)]
pub(super) struct Events(String);

impl Events {
    /// Adds an event. Those of chat completions have no name.
    pub(super) fn push(&mut self, name: Option<&str>, write: impl FnOnce(&mut Writer<'_>)) {
        if let Some(name) = name {
            self.0.push_str("event: ");
            self.0.push_str(name);
            self.0.push('\n');
        }
        self.0.push_str("data: ");
        write(&mut Writer::compact(&mut self.0));
        self.0.push_str("\n\n");
    }

    /// Adds an event whose data are not JSON.
    pub(super) fn push_word(&mut self, word: &str) {
        self.0.push_str("data: ");
        self.0.push_str(word);
        self.0.push_str("\n\n");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
