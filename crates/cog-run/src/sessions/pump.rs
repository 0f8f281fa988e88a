//! Writes a run's chunks to its session's log.

use std::{any::Any, sync::Arc};

use cog_spec::{Chunk, Code, ErrorBody};

use super::{shared::Shared, store::SessionStore};
use crate::{CancelReason, ChunkStream};

/// The run of a session. It always writes exactly one final event, even when it panics or is dropped.
pub(crate) struct Pump {
    store: Arc<SessionStore>,
    session: Arc<Shared>,
    /// Held until the run has ended.
    slot: Option<Box<dyn Any + Send>>,
    has_ended: bool,
}

impl Pump {
    pub(crate) fn new(store: Arc<SessionStore>, session: Arc<Shared>, slot: Box<dyn Any + Send>) -> Self {
        Self { store, session, slot: Some(slot), has_ended: false }
    }

    /// Writes the chunks to the log as they arrive. Chunks that arrive together are written together.
    pub(crate) async fn run(mut self, mut chunks: ChunkStream) {
        let mut batch = Vec::new();
        while chunks.next_batch(&mut batch).await {
            let end = batch.pop_if(|last| last.is_end());
            if !batch.is_empty() {
                self.store.write(&self.session, &batch);
                batch.clear();
            }
            if let Some(end) = end {
                drop(chunks); // this also cancels the call to the provider
                return self.end(&end);
            }
        }
        self.fail(defect("the run ended without a final event"));
    }

    /// Ends a session whose run returned no final event.
    fn fail(&mut self, error: ErrorBody) {
        let end = self.session.final_event(&self.session.lock().log, error);
        self.end(&end);
    }

    fn end(&mut self, end: &Chunk) {
        self.has_ended = true;
        self.slot = None; // free the slot before a reader sees the final event and starts the next run
        self.store.end(&self.session, end);
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if !self.has_ended {
            let error = if std::thread::panicking() {
                defect("the run panicked")
            } else {
                CancelReason::Shutdown.error()
            };
            self.fail(error);
        }
    }
}

fn defect(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InternalError, message).suggest(Code::InternalError.advice())
}
