//! The messages of a run with their metadata (appendix A.6).

use std::sync::{Arc, Mutex, PoisonError};

use cog_harmony::{Conversation, Message};

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
