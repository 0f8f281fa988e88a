//! Sessions: streamed runs that continue when a connection is lost (docs/spec/streaming.md).
//!
//! Each streamed run belongs to a session. A task writes its chunks to the session's log, each serialized
//! once. Every transport reads that log through a [`Subscriber`]. When the last subscriber disconnects, the
//! run is cancelled, unless it is detached. When the session of an interrupted run is
//! [resumed](Sessions::resume), the model is called again, after the tool calls that the run made.

mod file;
mod journal;
mod log;
mod resume;
mod session;
mod shared;
mod shared_log;
mod store;
mod stored_run;

use std::{
    any::Any,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cog_json::Node;
use cog_module::Module;
use cog_spec::{Chunk, Code, Envelope, ErrorBody};
use serde::Serialize;
use tokio::{runtime::Handle, task::JoinSet};

use self::{
    file::Header, session::UnownedLog, shared::Shared, shared_log::SessionWriter, store::SessionStore,
};
pub use self::{
    resume::{ResumeError, ResumeFrom},
    session::{
        Batch, Entry, NewSession, RunSpec, Session, SessionOptions, SessionSettings, StartFrom, Subscriber,
    },
    shared_log::{AppendError, LogReading, LogRecord, LogRequest, SharedLog},
    stored_run::{RunRecord, StoredRun, StoredRuns},
};
use crate::{
    CancelReason, ChunkStream, RunContext, RunInput, Runtime, clock, parts_state::FinishedParts,
    session::generate_id,
};

/// The sessions of a program, limited in number, time and memory. Clones share the sessions.
///
/// Dropping the last clone cancels the runs.
#[derive(Clone)]
pub struct Sessions(Arc<Owner>);

/// Owns the tasks of the runs.
struct Owner {
    store: Arc<SessionStore>,
    tasks: Mutex<JoinSet<()>>,
}

impl Sessions {
    /// Opens a store of sessions.
    ///
    /// # Errors
    /// The directory [`SessionSettings::state_dir`] cannot be used.
    pub fn open(settings: SessionSettings) -> Result<Self, SessionError> {
        let owner = Owner { store: Arc::new(SessionStore::open(settings)?), tasks: Mutex::default() };
        if Handle::try_current().is_ok() {
            drop(owner.sweeping()); // stored sessions expire even when no run starts
        }
        Ok(Self(Arc::new(owner)))
    }

    /// Opens a store of sessions that several servers share through a log: each of them resumes the sessions of all. Must be called
    /// within a tokio runtime. [`SessionSettings::state_dir`] is not used.
    ///
    /// # Errors
    /// None at present.
    pub fn open_shared(settings: SessionSettings, log: Arc<dyn SharedLog>) -> Result<Self, SessionError> {
        let requests = log.requests();
        let store = SessionStore::open_shared(settings, log)?;
        let sessions = Self(Arc::new(Owner { store: Arc::new(store), tasks: Mutex::default() }));
        sessions.reply_to_others(requests);
        Ok(sessions)
    }

    /// Checks a run for a new session.
    ///
    /// # Errors
    /// Errors that are known before the provider is called, as in [`Runtime::stream`].
    pub fn prepare(
        &self,
        runtime: &Runtime,
        module: &Arc<Module>,
        mut spec: RunSpec,
        options: SessionOptions,
    ) -> Result<NewSession, Box<Envelope>> {
        let id = generate_id().map_err(|error| {
            let message = format!("cannot generate random numbers: {error}");
            Box::new(Envelope::failure(ErrorBody::new(Code::InternalError, message)))
        })?;
        let log = UnownedLog(Some(self.0.store.call_log(&id, &options.owner)));
        spec.context.call_log.clone_from(&log.0);
        let context = RunContext {
            session_id: Some(id.clone()),
            recovery: self.0.store.settings.recovery,
            finished_parts: Some(FinishedParts::default()),
            ..spec.context.clone()
        };
        let input = RunInput::Json(spec.input.clone());
        let chunks = runtime.prepare(module, input, spec.options.clone(), context)?;
        let SessionOptions { owner, detached, permit } = options;
        let partial_allowed = module.manifest.failure.partial_allowed;
        let header =
            Header { id, owner, detached, created_ms: clock::millis(clock::now()), partial_allowed, spec };
        Ok(NewSession { sessions: self.clone(), chunks, header, permit, log })
    }

    /// Returns a session of this owner.
    pub fn get(&self, id: &str, owner: &str) -> Option<SessionInfo> {
        self.0.store.find(id, owner).map(|session| session.info())
    }

    /// Cancels a session permanently: its run ends, and an interrupted run cannot be resumed. A finished
    /// session is not changed.
    pub fn cancel(&self, id: &str, owner: &str) -> Option<SessionInfo> {
        let session = self.0.store.find(id, owner)?;
        if !self.cancel_elsewhere(&session) {
            self.0.store.cancel(&session);
        }
        Some(session.info())
    }

    /// Returns the number of sessions in each state, for monitoring.
    pub fn count_by_state(&self) -> [(SessionState, usize); 5] {
        self.0.store.count_by_state()
    }

    /// Returns the number of sessions that are in memory only because their file could not be written. 0 without a
    /// state directory.
    pub fn count_not_on_disk(&self) -> usize {
        self.0.store.count_not_on_disk()
    }

    /// Cancels every run.
    pub fn cancel_all(&self, reason: CancelReason) {
        self.0.store.cancel_all(reason);
    }

    /// Waits until no session runs.
    pub async fn idle(&self) {
        self.0.store.idle().await;
    }

    fn spawn_writer(&self, session: &Arc<Shared>, chunks: ChunkStream, permit: Box<dyn Any + Send>) {
        let writer = SessionWriter::new(Arc::clone(&self.0.store), Arc::clone(session), permit);
        let mut tasks = self.0.sweeping();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(writer.run(chunks));
    }
}

impl Owner {
    /// Returns the tasks. The first one removes expired sessions, and runs as long as the store.
    fn sweeping(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.is_empty() {
            tasks.spawn(sweep(Arc::downgrade(&self.store)));
        }
        tasks
    }
}

/// Removes expired sessions as long as the store exists.
async fn sweep(store: Weak<SessionStore>) {
    while let Some(wait) = store.upgrade().map(|store| store.sweep()) {
        tokio::time::sleep(wait).await;
    }
}

/// An error of opening a store of sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The directory cannot be used.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Another program stores its sessions in the directory.
    #[error("{}: another server stores its sessions in this directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SessionState {
    /// The model is called.
    Running,
    /// The answer is complete.
    Finished,
    /// The run ended with an error that resuming cannot fix.
    Failed,
    /// The run was interrupted. When it is resumed, the model is called again (docs/spec/streaming.md).
    Interrupted,
    /// The run was cancelled on request. It cannot be resumed.
    Cancelled,
}

/// Information about a session for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id, which no other client can guess.
    #[serde(rename = "session_id")]
    pub id: String,
    /// The module that runs.
    pub module: String,
    /// The state of the session.
    pub state: SessionState,
    /// Whether the run continues without readers.
    pub detached: bool,
    /// The `seq` of the last numbered chunk; 0 before the first (ruling R41).
    pub last_seq: u64,
    /// The creation time in milliseconds since 1970.
    pub created_ms: u64,
}

impl SessionState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Failed, Self::Interrupted, Self::Cancelled];

    /// Returns the name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the state after this final event.
    pub(crate) fn after(end: &Chunk) -> Self {
        match end {
            Chunk::Final { .. } => Self::Finished,
            Chunk::Error { recovery: Some(_), .. } => Self::Interrupted,
            Chunk::Error { error, .. } => Self::from_error(error),
            Chunk::Meta { .. } | Chunk::Delta { .. } | Chunk::Snapshot { .. } | Chunk::Progress(_) => {
                Self::Running
            }
        }
    }

    /// Returns the state after an error that resuming cannot fix.
    pub(crate) fn from_error(error: &ErrorBody) -> Self {
        let reason = error.detail("reason").and_then(Node::as_str);
        if reason == Some("cancelled") { Self::Cancelled } else { Self::Failed }
    }
}
