//! The state of one session, shared by its run, its readers and the store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize};

use cog_json::Value;
use cog_spec::{Chunk, Code, ErrorBody, Recovery};
use tokio::sync::Notify;

use super::{
    SessionInfo, SessionState,
    file::{Found, Header},
    log::{self, Log},
    resume,
    session::RunSpec,
    shared_log::LogRecord,
};
use crate::{CancelReason, Cancellation, RecoveryOffer, call_log::CallLog};

/// One session. Its run writes to it, subscribers read it, and the store owns it.
pub(crate) struct Shared {
    pub(crate) id: String,
    pub(crate) module: String,
    pub(crate) owner: String,
    /// Whether the run continues without readers.
    pub(crate) detached: bool,
    /// The creation time in milliseconds since 1970.
    pub(crate) created_ms: u64,
    /// Whether a failed run may return the partial answer (`failure.partial_allowed`).
    pub(crate) partial_allowed: bool,
    /// Notified when there are new entries, and when the session has ended.
    changed: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) stage: SessionState,
    pub(crate) cancellation: Cancellation,
    /// The run to start again; none when the session cannot be resumed.
    pub(crate) spec: Option<RunSpec>,
    /// The bytes of the stored input.
    pub(crate) input_bytes: usize,
    subscribers: usize,
    was_subscribed: bool,
    /// The key of the session among the finished ones.
    pub(crate) finished_key: Option<u64>,
    /// The bytes that the store counts for the session; none after its removal.
    pub(crate) counted: Option<usize>,
    /// The bytes of all sessions of its owner, while it is in the store.
    pub(crate) owner_bytes: Option<Arc<AtomicUsize>>,
    /// Whether the session was cancelled on request.
    pub(crate) is_cancelled: bool,
    /// The server that runs it, when it is another one.
    pub(crate) remote: Option<String>,
    /// Whether another server has continued it.
    pub(crate) is_superseded: bool,
    /// The state of its file; none for a session in memory only.
    pub(crate) persistence: Option<Persistence>,
}

/// The state of a session's file, or of its records in a log that several servers share.
pub(crate) struct Persistence {
    /// The header line, until it is written.
    pub(crate) header: String,
    /// The position up to which the writer has taken entries.
    pub(crate) written: u64,
    /// The position up to which entries are in the file and visible to readers.
    pub(crate) shown: u64,
    /// The bytes of all entries in the file.
    pub(crate) bytes: usize,
    /// The number of its last record.
    pub(crate) record: u64,
    /// Whether the session is in the writer's queue.
    pub(crate) is_queued: bool,
}

/// The receiver of a notification about new entries.
pub(crate) enum Wake {
    Readers,
    /// The file writer, which then notifies the readers.
    Writer,
    /// No notification: the session is already in the writer's queue.
    None,
}

impl Shared {
    /// Returns the session of a new run.
    pub(crate) fn new(header: Header) -> Self {
        let Header { id, owner, detached, created_ms, partial_allowed, spec } = header;
        let state = State {
            log: Log::default(),
            stage: SessionState::Running,
            cancellation: spec.options.cancellation.clone(),
            input_bytes: spec.input.to_string().len(),
            spec: Some(spec.clone()),
            subscribers: 0,
            was_subscribed: false,
            finished_key: None,
            counted: Some(0),
            owner_bytes: None,
            is_cancelled: false,
            remote: None,
            is_superseded: false,
            persistence: None,
        };
        Self {
            id,
            module: spec.module,
            owner,
            detached,
            created_ms,
            partial_allowed,
            changed: Notify::new(),
            state: Mutex::new(state),
        }
    }

    /// Restores a session from its file. An unfinished session ends now, as interrupted.
    pub(crate) fn restored(found: Found, recovery: Option<RecoveryOffer>) -> Self {
        let Found { header, log, state: stage, .. } = found;
        let session = Self::new(header);
        let mut state = session.lock();
        let written = log.end();
        state.persistence = Some(Persistence {
            written,
            shown: written,
            bytes: log.bytes(),
            ..Persistence::new(String::new())
        });
        state.log = log;
        // The program that ran it is gone: the directory is locked by this one.
        if stage == SessionState::Running {
            let end = session.interrupted_event(&state.log, recovery);
            state.log.push(&end);
            state.close(SessionState::after(&end));
        } else {
            state.close(stage);
        }
        drop(state);
        session
    }

    /// Returns the session of another server, up to this record.
    pub(crate) fn adopted(found: Found, record: &LogRecord) -> Self {
        let Found { header, log, state: stage, .. } = found;
        let session = Self::new(header);
        let mut state = session.lock();
        state.persistence = Some(Persistence { bytes: log.bytes(), ..Persistence::new(String::new()) });
        state.log = log;
        state.stored_up_to(record.number);
        match stage {
            SessionState::Running => state.remote = Some(record.server.clone()),
            stage => state.close(stage),
        }
        drop(state);
        session
    }

    /// Returns the final event of a run that an earlier program did not finish.
    pub(crate) fn interrupted_event(&self, log: &Log, recovery: Option<RecoveryOffer>) -> Chunk {
        let last_seq = log.last_seq();
        let recovery = recovery.map(|offer| Recovery {
            last_seq,
            last_checkpoint: resume::newest(log, last_seq),
            retry_after_ms: Some(offer.retry_after_ms),
            max_retries: Some(offer.max_retries),
        });
        let mut end = self.final_event(log, CancelReason::Shutdown.error());
        if let Chunk::Error { recovery: offered, .. } = &mut end {
            *offered = recovery;
        }
        end
    }

    /// Locks the state. It is consistent between any two statements, so a poisoned lock is usable.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waiting readers.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until `check` returns a value. It is called again after every notification.
    pub(crate) async fn wait_for<T>(&self, mut check: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            // Created before the check, so that no notification in between is missed.
            let changed = self.changed.notified();
            if let Some(found) = check(&mut self.lock()) {
                return found;
            }
            changed.await;
            // Under load, other tasks write their chunks first, so that one batch contains them all.
            tokio::task::yield_now().await;
        }
    }

    /// Makes the entries up to this position visible to readers. They are in the file.
    pub(crate) fn show(&self, to: u64) {
        let mut state = self.lock();
        let end = state.log.end();
        if let Some(file) = &mut state.persistence {
            file.shown = to.min(end);
        }
        drop(state);
        self.notify();
    }

    /// Adds a reader.
    pub(crate) fn subscribe(&self) {
        let mut state = self.lock();
        state.subscribers += 1;
        state.was_subscribed = true;
    }

    /// Removes a reader. After the last one, the run is cancelled unless it is detached.
    pub(crate) fn unsubscribe(&self) {
        let mut state = self.lock();
        state.subscribers = state.subscribers.saturating_sub(1);
        self.cancel_unread(&state);
    }

    /// Cancels a run that never had a reader.
    pub(crate) fn cancel_if_unread(&self) {
        let state = self.lock();
        if !state.was_subscribed {
            self.cancel_unread(&state);
        }
    }

    fn cancel_unread(&self, state: &State) {
        // A run at another server has its readers there.
        let is_running = state.stage == SessionState::Running && state.remote.is_none();
        if state.subscribers == 0 && !self.detached && is_running {
            state.cancellation.cancel(CancelReason::ClientGone);
        }
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let state = self.lock();
        SessionInfo {
            id: self.id.clone(),
            module: self.module.clone(),
            state: state.public_state(),
            detached: self.detached,
            last_seq: state.log.last_seq(),
            created_ms: self.created_ms,
        }
    }

    /// Returns the error chunk with which the store ends this session, with the partial answer from the log
    /// (ruling R43).
    pub(crate) fn final_event(&self, log: &Log, error: ErrorBody) -> Chunk {
        let mut end = self.error(error);
        if let Chunk::Error { partial_data, .. } = &mut end {
            *partial_data = self.partial_allowed.then(|| log::from_log(log)).flatten();
        }
        end
    }

    /// Returns an error chunk of this session, without data.
    fn error(&self, error: ErrorBody) -> Chunk {
        Chunk::Error {
            session_id: self.id.clone(),
            error: Box::new(error),
            recovery: None,
            partial_data: None,
            warnings: Vec::new(),
        }
    }

    /// Returns the error chunk for a reader that was too slow.
    pub(crate) fn too_slow(&self) -> Chunk {
        let message = "the reader is too slow: its next chunk was removed from the session's log";
        let details = serde_json::json!({ "reason": "left_behind" });
        let error = ErrorBody::new(Code::StreamInterrupted, message)
            .with_recoverable(false)
            .suggest("Read faster; the operator can raise --max-session-bytes.")
            .with_details(Value::from(details));
        self.error(error)
    }
}

impl State {
    /// Returns the position up to which entries are visible to readers.
    pub(crate) fn shown(&self) -> u64 {
        self.persistence.as_ref().map_or(self.log.end(), |file| file.shown)
    }

    /// Shows all entries, which a record of another server contains.
    pub(crate) fn stored_up_to(&mut self, record: u64) {
        let end = self.log.end();
        if let Some(stored) = &mut self.persistence {
            (stored.written, stored.shown, stored.record) = (end, end, record);
        }
    }

    /// Returns the receiver of the next notification.
    pub(crate) fn wake(&mut self) -> Wake {
        // Readers of a stored session are woken by the writer: a client must not have what a killed program would forget.
        let Some(file) = &mut self.persistence else { return Wake::Readers };
        if std::mem::replace(&mut file.is_queued, true) { Wake::None } else { Wake::Writer }
    }

    /// Removes the final event, so that the session can continue.
    pub(crate) fn reopen(&mut self) {
        self.log.reopen();
        let end = self.log.end();
        // The removed event stays in the file; the entries that follow replace it when they are read back.
        if let Some(file) = &mut self.persistence {
            file.written = file.written.min(end);
            file.shown = file.shown.min(end);
        }
    }

    /// Returns whether the run is being cancelled but has not ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.stage == SessionState::Running && self.cancellation.reason().is_some()
    }

    /// Marks the run as ended. The data for a restart is freed unless the run was interrupted.
    pub(crate) fn close(&mut self, stage: SessionState) {
        self.stage = stage;
        self.log.shrink();
        if stage != SessionState::Interrupted {
            self.forget_spec();
            self.input_bytes = 0;
        }
    }

    /// Removes the run to start again, and the log of its tool calls.
    pub(crate) fn forget_spec(&mut self) {
        if let Some(log) = self.spec.take().and_then(|spec| spec.context.call_log) {
            log.remove();
        }
    }

    /// Returns the bytes of memory that the session occupies.
    pub(crate) fn bytes(&self) -> usize {
        let calls = self.spec.as_ref().and_then(|spec| spec.context.call_log.as_ref());
        self.log.bytes() + self.input_bytes + calls.map_or(0, CallLog::bytes)
    }

    /// Returns the state for clients. A cancelled run is reported as cancelled at once.
    fn public_state(&self) -> SessionState {
        match self.stage {
            SessionState::Running if self.is_cancelled => SessionState::Cancelled,
            stage => stage,
        }
    }
}
