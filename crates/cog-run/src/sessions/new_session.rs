use std::{any::Any, sync::Arc};

use cog_spec::Envelope;

use super::{Sessions, header::Header, session::Session, shared::Shared};
use crate::{ChunkStream, tools::CallLog};

/// A checked run that has no session yet.
#[must_use = "a run that is dropped does not start"]
pub struct NewSession {
    pub(super) sessions: Sessions,
    pub(super) chunks: ChunkStream,
    pub(super) header: Header,
    pub(super) slot: Box<dyn Any + Send>,
    pub(super) log: UnownedLog,
}

/// The log of a run without a session. It is removed with the media in it, unless a session owns it.
pub(super) struct UnownedLog(pub(super) Option<CallLog>);

impl Drop for UnownedLog {
    fn drop(&mut self) {
        if let Some(log) = &self.0 {
            log.remove();
        }
    }
}

impl NewSession {
    /// Starts the run at once. Must be called within a tokio runtime, which runs it.
    pub fn start(self) -> Session {
        let Self { sessions, chunks, header, slot, mut log } = self;
        log.0 = None; // it is in the header
        let session = Arc::new(Shared::new(header));
        sessions.0.store.add(&session);
        sessions.pump(&session, chunks, slot);
        Session::new(session)
    }

    /// Starts the run when the media of its input are ready. Dropping the future cancels it.
    ///
    /// # Errors
    /// Errors of the media, and all others before the provider is called (ruling R54).
    pub async fn open(mut self) -> Result<Session, Box<Envelope>> {
        self.chunks = self.chunks.prepared().await?;
        Ok(self.start())
    }
}
