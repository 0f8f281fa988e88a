//! Sessions: streamed runs that outlive the connection that asked for them (docs/spec/streaming.md).
//!
//! A streamed run belongs to its session. A task pumps its chunks into the session's log, each written as JSON once;
//! every transport is a [`Subscriber`] of that log from some place on. The last follower that leaves stops the run,
//! unless it is detached. A run that was interrupted is asked again when its session is
//! [resumed](Sessions::resume).

mod checkpoint;
mod error;
mod file;
mod header;
mod info;
mod journal;
mod log;
mod partial;
mod pump;
mod resume;
mod session;
mod settings;
mod shared;
mod spec;
mod store;
mod subscriber;
mod unasked;

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
    resume::{ResumeError, ResumeFrom},
    session::Session,
    settings::SessionSettings,
    spec::{RunSpec, Start},
    subscriber::{After, Batch, Entry, Subscriber},
};
use self::{header::Header, pump::Pump, shared::Shared, store::SessionStore};
use crate::{CancelReason, ChunkStream, RunInput, RunOptions, Runtime, session::fresh_id};

/// The sessions of a program, bounded in number, time and memory. Clones share them.
///
/// Dropping the last clone ends the runs.
#[derive(Clone)]
pub struct Sessions(Arc<Owner>);

/// Whose the runs are.
struct Owner {
    shelf: Arc<SessionStore>,
    tasks: Mutex<JoinSet<()>>,
}

impl Sessions {
    /// A store of sessions.
    ///
    /// # Errors
    /// The directory of [`SessionSettings::state_dir`] cannot be used.
    pub fn open(settings: SessionSettings) -> Result<Self, SessionError> {
        let owner = Owner { shelf: Arc::new(SessionStore::open(settings)?), tasks: Mutex::default() };
        if Handle::try_current().is_ok() {
            drop(owner.sweeping()); // what was found on disk leaves in time also where nothing ever begins
        }
        Ok(Self(Arc::new(owner)))
    }

    /// Begins a run in a session of its own. To be called within a tokio runtime, which then runs it.
    ///
    /// # Errors
    /// What is known before the provider is asked, as [`Runtime::execute_stream`] tells it.
    pub fn start(
        &self,
        runtime: &Runtime,
        module: &Arc<Module>,
        spec: RunSpec,
        start: Start,
    ) -> Result<Session, Box<Envelope>> {
        let id = fresh_id().map_err(|error| {
            let message = format!("the system gives no random numbers: {error}");
            Box::new(Envelope::failure(ErrorBody::new(Code::InternalError, message)))
        })?;
        let options = RunOptions {
            session_id: Some(id.clone()),
            recovery: self.0.shelf.settings.recovery,
            ..spec.options.clone()
        };
        let chunks = runtime.execute_stream(module, RunInput::Json(spec.input.clone()), options)?;
        let Start { owner, detached, slot } = start;
        let partial_allowed = module.manifest.failure.partial_allowed;
        let header = Header { id, owner, detached, created_ms: now_ms(), partial_allowed, spec };
        let session = Arc::new(Shared::new(header));
        self.0.shelf.add(&session);
        self.pump(&session, chunks, slot);
        Ok(Session::new(session))
    }

    /// A session, as its owner may see it.
    pub fn get(&self, id: &str, owner: &str) -> Option<SessionInfo> {
        self.0.shelf.find(id, owner).map(|session| session.info())
    }

    /// Cancels a session for good: its run ends, or, where that was interrupted, cannot be resumed any more. One that is
    /// finished stays as it is.
    pub fn cancel(&self, id: &str, owner: &str) -> Option<SessionInfo> {
        let session = self.0.shelf.find(id, owner)?;
        self.0.shelf.cancel(&session);
        Some(session.info())
    }

    /// How many sessions run.
    pub fn running(&self) -> usize {
        self.0.shelf.running()
    }

    /// How many sessions are in each state, for those who watch a server.
    pub fn tally(&self) -> [(SessionState, usize); 5] {
        self.0.shelf.tally()
    }

    /// Stops every run.
    pub fn stop_all(&self, reason: CancelReason) {
        self.0.shelf.stop_all(reason);
    }

    /// Waits until no session runs.
    pub async fn idle(&self) {
        self.0.shelf.idle().await;
    }

    fn pump(&self, session: &Arc<Shared>, chunks: ChunkStream, slot: Box<dyn Any + Send>) {
        let pump = Pump::new(Arc::clone(&self.0.shelf), Arc::clone(session), slot);
        let mut tasks = self.0.sweeping();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(pump.run(chunks));
    }
}

impl Owner {
    /// The tasks, among them the one that lets sessions go in time; it never ends by itself.
    fn sweeping(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.is_empty() {
            tasks.spawn(sweep(Arc::downgrade(&self.shelf)));
        }
        tasks
    }
}

/// Lets sessions go when their time is over, as long as there is a store.
async fn sweep(shelf: Weak<SessionStore>) {
    while let Some(wait) = shelf.upgrade().map(|shelf| shelf.sweep()) {
        tokio::time::sleep(wait).await;
    }
}

/// The wall clock, which a session's beginning is told by.
#[expect(
    clippy::disallowed_methods,
    reason = "people are told when a session began; nothing is decided by it"
)]
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
