//! What the run, the readers and the store know of one session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cog_json::Value;
use cog_spec::{Chunk, Code, ErrorBody};
use tokio::sync::Notify;

use super::{RunSpec, SessionInfo, SessionState, log::Log};
use crate::{Stop, StopReason};

/// One session. Its run writes, its followers read, the store keeps it.
pub(crate) struct Shared {
    pub(crate) id: String,
    pub(crate) module: String,
    pub(crate) owner: String,
    /// The run goes on when nobody reads it.
    pub(crate) detached: bool,
    /// Milliseconds since 1970.
    pub(crate) created_ms: u64,
    /// Told when there is more to read, and when the session has ended.
    told: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) stage: SessionState,
    pub(crate) stop: Stop,
    /// What to ask again; none where nothing can be.
    pub(crate) spec: Option<RunSpec>,
    /// The bytes that the input takes up as long as it is kept.
    pub(crate) input_bytes: usize,
    followers: usize,
    has_been_followed: bool,
    /// Where it stands among the sessions that run no more.
    pub(crate) ticket: Option<u64>,
    /// The bytes that the store counts for it; none once it has left the store.
    pub(crate) counted: Option<usize>,
}

impl Shared {
    /// A session whose run begins.
    pub(crate) fn new(id: String, owner: String, detached: bool, created_ms: u64, spec: RunSpec) -> Self {
        let state = State {
            log: Log::default(),
            stage: SessionState::Running,
            stop: spec.options.stop.clone(),
            input_bytes: spec.input.to_string().len(),
            spec: Some(spec.clone()),
            followers: 0,
            has_been_followed: false,
            ticket: None,
            counted: Some(0),
        };
        Self {
            id,
            module: spec.module,
            owner,
            detached,
            created_ms,
            told: Notify::new(),
            state: Mutex::new(state),
        }
    }

    /// The state is whole between any two statements, so that a panic elsewhere spoils nothing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait for more.
    pub(crate) fn tell(&self) {
        self.told.notify_waiters();
    }

    /// Waits until `look` finds something; it is asked again whenever more has been told.
    pub(crate) async fn when<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            // Made before the look, so that nothing told in between is missed.
            let told = self.told.notified();
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            told.await;
        }
    }

    /// Counts a reader in.
    pub(crate) fn enter(&self) {
        let mut state = self.lock();
        state.followers += 1;
        state.has_been_followed = true;
    }

    /// Counts a reader out. A run that nobody reads any more is stopped, unless it is detached.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.followers = state.followers.saturating_sub(1);
        self.stop_unread(&state);
    }

    /// Stops a run that nobody has come to read.
    pub(crate) fn leave_unread(&self) {
        let state = self.lock();
        if !state.has_been_followed {
            self.stop_unread(&state);
        }
    }

    fn stop_unread(&self, state: &State) {
        if state.followers == 0 && !self.detached && state.stage == SessionState::Running {
            state.stop.now(StopReason::ClientGone);
        }
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let state = self.lock();
        SessionInfo {
            id: self.id.clone(),
            module: self.module.clone(),
            state: state.told_stage(),
            detached: self.detached,
            last_seq: state.log.last_seq(),
            created_ms: self.created_ms,
        }
    }

    /// The error chunk with which this session ends.
    pub(crate) fn error(&self, error: ErrorBody) -> Chunk {
        Chunk::Error {
            session_id: self.id.clone(),
            error: Box::new(error),
            recovery: None,
            partial_data: None,
            warnings: Vec::new(),
        }
    }

    /// The error chunk of a reader that was too slow.
    pub(crate) fn left_behind(&self) -> Chunk {
        let message = "this reader fell behind: what it had still to read has left the log of the session";
        let details = serde_json::json!({ "reason": "left_behind" });
        let error = ErrorBody::new(Code::StreamInterrupted, message)
            .with_recoverable(false)
            .suggest("read faster, or keep longer logs of sessions")
            .with_details(Value::from(details));
        self.error(error)
    }
}

impl State {
    /// The place up to which readers may read.
    pub(crate) fn shown(&self) -> u64 {
        self.log.end()
    }

    /// Whether the run goes on, and nobody has told it to stop.
    pub(crate) fn is_ending(&self) -> bool {
        self.stage == SessionState::Running && self.stop.reason().is_some()
    }

    /// Notes that nothing runs any more. What only asking again needs is let go where nothing will be asked again.
    pub(crate) fn close(&mut self, stage: SessionState) {
        self.stage = stage;
        self.log.shrink();
        if stage != SessionState::Interrupted {
            self.spec = None;
            self.input_bytes = 0;
        }
    }

    /// The bytes of memory that the session takes up.
    pub(crate) fn bytes(&self) -> usize {
        self.log.bytes() + self.input_bytes
    }

    /// The stage as a client is told it: a run that was cancelled is over as soon as it is told to stop.
    fn told_stage(&self) -> SessionState {
        match self.stop.reason() {
            Some(StopReason::Cancelled) if self.stage == SessionState::Running => SessionState::Cancelled,
            _ => self.stage,
        }
    }
}
