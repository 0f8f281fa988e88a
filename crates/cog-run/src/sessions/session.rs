//! The handle of a session for the caller that started it.

use std::{any::Any, path::PathBuf, sync::Arc, time::Duration};

use cog_json::Value;
use cog_spec::Envelope;

use super::{
    Sessions,
    file::Header,
    shared::Shared,
    subscriber::{StartFrom, Subscriber},
};
use crate::{ChunkStream, RecoveryOffer, RunContext, RunOptions, call_log::CallLog};

/// A started run and its log.
///
/// When it is dropped before any reader [follows](Session::follow) it, its run is cancelled, unless it is
/// detached.
pub struct Session(Arc<Shared>);

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Returns the session's id: `sess_` and 128 random bits in hexadecimal (SPEC 11.2).
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns a reader of the log from this position. Dropping the last reader cancels the run, unless it is
    /// detached.
    pub fn follow(&self, from: StartFrom) -> Subscriber {
        Subscriber::new(Arc::clone(&self.0), from)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.cancel_if_unread();
    }
}

/// A checked run that has no session yet.
#[must_use = "a run that is dropped does not start"]
pub struct NewSession {
    pub(super) sessions: Sessions,
    pub(super) chunks: ChunkStream,
    pub(super) header: Header,
    pub(super) permit: Box<dyn Any + Send>,
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
        let Self { sessions, chunks, header, permit, mut log } = self;
        log.0 = None; // it is in the header
        let session = Arc::new(Shared::new(header));
        sessions.0.store.add(&session);
        sessions.spawn_writer(&session, chunks, permit);
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

/// The specification of a run. It is stored, so that an interrupted run can start again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunSpec {
    /// The module's name. It is loaded again when the run starts again.
    pub module: String,
    /// The input.
    pub input: Value,
    /// The options of the run.
    pub options: RunOptions,
    /// What surrounds the run. Only its warnings are stored.
    pub context: RunContext,
}

/// The options of a new session.
#[non_exhaustive]
pub struct SessionOptions {
    /// The owner of the session. Other owners cannot access it.
    pub owner: String,
    /// Whether the run continues without readers.
    pub detached: bool,
    /// A value that is held until the run has ended, such as a semaphore permit.
    pub permit: Box<dyn Any + Send>,
}

impl RunSpec {
    /// Returns the specification of a run with default options.
    pub fn new(module: impl Into<String>, input: Value) -> Self {
        Self { module: module.into(), input, options: RunOptions::default(), context: RunContext::default() }
    }

    /// Sets the options of the run.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }
}

impl SessionOptions {
    /// Returns the options of a session of this owner, whose run is cancelled when its last reader disconnects.
    pub fn new(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), detached: false, permit: Box::new(()) }
    }

    /// Sets whether the run continues without readers.
    #[must_use]
    pub fn detached(mut self, detached: bool) -> Self {
        self.detached = detached;
        self
    }

    /// Sets a value that is held until the run has ended, such as a permit of a semaphore.
    #[must_use]
    pub fn permit(mut self, permit: Box<dyn Any + Send>) -> Self {
        self.permit = permit;
        self
    }
}

/// The limits and the directory of a store of sessions.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The time for which a finished session is stored: 15 minutes by default.
    pub ttl: Duration,
    /// The maximum number of finished sessions: 1,000 by default.
    pub max_sessions: usize,
    /// The maximum bytes of all logs together: 64 MiB by default.
    ///
    /// Over this limit, finished sessions are removed, the oldest first. Then the oldest entries of growing
    /// logs are dropped.
    pub max_total_bytes: usize,
    /// The maximum bytes of one log: 16 MiB by default, at most 1 GiB. Over this limit, its oldest entries
    /// are dropped, and its file is removed.
    pub max_session_bytes: usize,
    /// The directory that stores sessions; none stores them in memory only.
    pub state_dir: Option<PathBuf>,
    /// The recovery offer in the final event of an interrupted stream; none disables resuming (E4012).
    pub recovery: Option<RecoveryOffer>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15 * 60),
            max_sessions: 1000,
            max_total_bytes: 64 << 20,
            max_session_bytes: 16 << 20,
            state_dir: None,
            recovery: Some(RecoveryOffer { retry_after_ms: 1000, max_retries: 3 }),
        }
    }
}
