use std::time::SystemTime;

use cog_spec::{FinishReason, ModelEvent, Warning, WarningCode};

use super::{AnswerCache, CachedReply, millis};

/// Records the reply of a model, and stores it if its answer is successful.
pub(crate) struct CacheSink {
    cache: AnswerCache,
    key: String,
    model: Option<String>,
    texts: Vec<String>,
    is_complete: bool,
}

impl CacheSink {
    pub(crate) fn new(cache: AnswerCache, key: String) -> Self {
        Self { cache, key, model: None, texts: Vec::new(), is_complete: false }
    }

    /// Forgets the reply so far, as the model is called again.
    pub(crate) fn restart(&mut self) {
        self.texts.clear();
        self.is_complete = false;
    }

    /// Records an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Started { model, .. } => self.model.clone_from(model),
            ModelEvent::Text(text) => self.texts.push(text.clone()),
            ModelEvent::Finished(reason) => self.is_complete = *reason == FinishReason::Stop,
            _ => {}
        }
    }

    /// Stores the reply, if it is complete. Returns a warning if it cannot be stored: the answer does not depend on it.
    pub(crate) fn store(self, now: SystemTime) -> Option<Warning> {
        if !self.is_complete {
            return None;
        }
        let reply = CachedReply::new(&self.key, millis(now), self.model, self.texts);
        let error = self.cache.write(&self.key, &reply).err()?;
        let message = format!("The answer was not stored in the cache: {error}.");
        Some(Warning::new(WarningCode::CacheUnusable, message))
    }
}
