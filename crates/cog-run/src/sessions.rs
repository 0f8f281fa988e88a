//! Sessions: streamed runs that continue when a connection is lost (docs/spec/streaming.md).
//!
//! Each streamed run belongs to a session. A task writes its chunks to the session's log, each serialized
//! once. Every transport reads that log through a [`Subscriber`]. When the last subscriber disconnects, the
//! run is cancelled, unless it is detached. When the session of an interrupted run is
//! [resumed](Sessions::resume), the model is called again, after the tool calls that the run made.

mod adopt;
mod checkpoint;
mod error;
mod file;
mod finished;
mod header;
mod info;
pub(crate) mod internal_options;
mod journal;
mod log;
mod new_session;
mod part_answer;
mod partial;
mod pump;
mod replicator;
mod resume;
mod session;
mod settings;
mod shared;
mod shared_log;
mod spec;
mod store;
mod stored_run;
mod subscriber;

use std::{
    any::Any,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::SystemTime,
};

use cog_module::Module;
use cog_spec::{Code, Envelope, ErrorBody};
use tokio::{runtime::Handle, task::JoinSet};

pub use self::{
    error::SessionError,
    info::{SessionInfo, SessionState},
    new_session::NewSession,
    resume::{ResumeError, ResumeFrom},
    session::Session,
    settings::SessionSettings,
    shared_log::{AppendError, LogFuture, LogReading, LogRecord, LogRequest, LogStream, SharedLog},
    spec::{RunSpec, SessionOptions},
    stored_run::{RunRecord, StoredRun, StoredRuns},
    subscriber::{After, Batch, Entry, Subscriber},
};
use self::{header::Header, new_session::UnownedLog, pump::Pump, shared::Shared, store::SessionStore};
use crate::{
    CancelReason, ChunkStream, RunInput, RunOptions, Runtime, composition::FinishedParts,
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

    /// Starts a run in a new session. Must be called within a tokio runtime, which runs it.
    ///
    /// # Errors
    /// Errors that are known before the provider is called, as in [`Runtime::execute_stream`].
    pub fn start(
        &self,
        runtime: &Runtime,
        module: &Arc<Module>,
        spec: RunSpec,
        options: SessionOptions,
    ) -> Result<Session, Box<Envelope>> {
        self.prepare(runtime, module, spec, options).map(NewSession::start)
    }

    /// Checks a run for a new session.
    ///
    /// # Errors
    /// As [`Sessions::start`].
    pub fn prepare(
        &self,
        runtime: &Runtime,
        module: &Arc<Module>,
        spec: RunSpec,
        options: SessionOptions,
    ) -> Result<NewSession, Box<Envelope>> {
        let id = generate_id().map_err(|error| {
            let message = format!("cannot generate random numbers: {error}");
            Box::new(Envelope::failure(ErrorBody::new(Code::InternalError, message)))
        })?;
        let mut spec = spec;
        let log = UnownedLog(Some(self.0.store.call_log(&id)));
        spec.options.call_log.clone_from(&log.0);
        let run = RunOptions {
            session_id: Some(id.clone()),
            recovery: self.0.store.settings.recovery,
            finished_parts: Some(FinishedParts::default()),
            ..spec.options.clone()
        };
        let chunks = runtime.execute_stream(module, RunInput::Json(spec.input.clone()), run)?;
        let SessionOptions { owner, detached, slot } = options;
        let partial_allowed = module.manifest.failure.partial_allowed;
        let header = Header { id, owner, detached, created_ms: now_ms(), partial_allowed, spec };
        Ok(NewSession { sessions: self.clone(), chunks, header, slot, log })
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

    /// Returns the number of running sessions.
    pub fn running(&self) -> usize {
        self.0.store.running()
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

    fn pump(&self, session: &Arc<Shared>, chunks: ChunkStream, slot: Box<dyn Any + Send>) {
        let pump = Pump::new(Arc::clone(&self.0.store), Arc::clone(session), slot);
        let mut tasks = self.0.sweeping();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(pump.run(chunks));
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

/// Returns the wall clock time, for the creation time of a session.
#[expect(clippy::disallowed_methods, reason = "clients see the creation time; no decision depends on it")]
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
