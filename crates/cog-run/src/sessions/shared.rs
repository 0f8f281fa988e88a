//! What the run, the readers and the store know of one session.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cog_json::Value;
use cog_spec::{Chunk, Code, ErrorBody, Recovery};
use tokio::sync::Notify;

use super::{
    checkpoint,
    header::{Found, Header},
    info::{SessionInfo, SessionState},
    log::Log,
    partial,
    spec::RunSpec,
};
use crate::{CancelReason, Cancellation, RecoveryOffer};

/// One session. Its run writes, its followers read, the store keeps it.
pub(crate) struct Shared {
    pub(crate) id: String,
    pub(crate) module: String,
    pub(crate) owner: String,
    /// The run goes on when nobody reads it.
    pub(crate) detached: bool,
    /// Milliseconds since 1970.
    pub(crate) created_ms: u64,
    /// The module has its failures tell what there is of an answer (`failure.partial_allowed`).
    pub(crate) partial_allowed: bool,
    /// Told when there is more to read, and when the session has ended.
    told: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) stage: SessionState,
    pub(crate) stop: Cancellation,
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
    /// Somebody cancelled it.
    pub(crate) is_cancelled: bool,
    /// How far its file is; none for a session in memory alone.
    pub(crate) kept: Option<Persistence>,
}

/// How far the file of a session is.
pub(crate) struct Persistence {
    /// What stands before the chunks, until that is written.
    pub(crate) header: String,
    /// The place up to which entries have been taken to be written.
    pub(crate) written: u64,
    /// The place up to which entries are in the file, and readers may see them.
    pub(crate) shown: u64,
    /// The bytes of all entries in the file.
    pub(crate) bytes: usize,
    /// The writer will come by.
    pub(crate) is_queued: bool,
}

/// Who has to be told of what was written into a log.
pub(crate) enum Told {
    Readers,
    /// The writer of files, who tells the readers.
    Writer,
    /// The writer, who is on the way already.
    Nobody,
}

impl Shared {
    /// A session whose run begins.
    pub(crate) fn new(header: Header) -> Self {
        let Header { id, owner, detached, created_ms, partial_allowed, spec } = header;
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
            is_cancelled: false,
            kept: None,
        };
        Self {
            id,
            module: spec.module,
            owner,
            detached,
            created_ms,
            partial_allowed,
            told: Notify::new(),
            state: Mutex::new(state),
        }
    }

    /// A session as its file tells it. Where it did not end, it ends now, as one that was cut.
    pub(crate) fn restored(found: Found, recovery: Option<RecoveryOffer>) -> Self {
        let Found { header, log, state: stage, .. } = found;
        let session = Self::new(header);
        let mut state = session.lock();
        let written = log.end();
        state.kept = Some(Persistence {
            written,
            shown: written,
            bytes: log.bytes(),
            ..Persistence::new(String::new())
        });
        state.log = log;
        if stage == SessionState::Running {
            let end = session.cut(&state.log, recovery);
            state.log.push(&end);
            state.close(SessionState::after(&end));
        } else {
            state.close(stage);
        }
        drop(state);
        session
    }

    /// The end of a run that a program before this one did not end.
    fn cut(&self, log: &Log, recovery: Option<RecoveryOffer>) -> Chunk {
        let last_seq = log.last_seq();
        let recovery = recovery.map(|offer| Recovery {
            last_seq,
            last_checkpoint: checkpoint::newest(log, last_seq),
            retry_after_ms: Some(offer.retry_after_ms),
            max_retries: Some(offer.max_retries),
        });
        let mut end = self.end(log, CancelReason::Shutdown.error());
        if let Chunk::Error { recovery: offered, .. } = &mut end {
            *offered = recovery;
        }
        end
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
            // GeneratedMedia before the look, so that nothing told in between is missed.
            let told = self.told.notified();
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            told.await;
            // Under load more is ready by now; what else can run writes it first, and one batch carries it all.
            tokio::task::yield_now().await;
        }
    }

    /// Lets readers see the entries up to this place, which are in the file.
    pub(crate) fn show(&self, to: u64) {
        let mut state = self.lock();
        let end = state.log.end();
        if let Some(kept) = &mut state.kept {
            kept.shown = to.min(end);
        }
        drop(state);
        self.tell();
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
            state.stop.now(CancelReason::ClientGone);
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

    /// The error chunk with which the store ends this session: with what the log gives of the answer (ruling R43).
    pub(crate) fn end(&self, log: &Log, error: ErrorBody) -> Chunk {
        let mut end = self.error(error);
        if let Chunk::Error { partial_data, .. } = &mut end {
            *partial_data = self.partial_allowed.then(|| partial::of(log)).flatten();
        }
        end
    }

    /// An error chunk of this session, without data.
    fn error(&self, error: ErrorBody) -> Chunk {
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
        self.kept.as_ref().map_or(self.log.end(), |kept| kept.shown)
    }

    /// Who has to be told of what is new.
    pub(crate) fn told(&mut self) -> Told {
        let Some(kept) = &mut self.kept else { return Told::Readers };
        if std::mem::replace(&mut kept.is_queued, true) { Told::Nobody } else { Told::Writer }
    }

    /// MediaCapabilities back the end: the session goes on.
    pub(crate) fn reopen(&mut self) {
        self.log.reopen();
        let end = self.log.end();
        if let Some(kept) = &mut self.kept {
            kept.written = kept.written.min(end);
            kept.shown = kept.shown.min(end);
        }
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
        match self.stage {
            SessionState::Running if self.is_cancelled => SessionState::Cancelled,
            stage => stage,
        }
    }
}
