//! Writes sessions to a log that several servers share.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cog_spec::{Chunk, Code, ErrorBody};
use tokio::{runtime::Handle, sync::Notify, task::JoinSet, time::Instant};

use super::{
    shared::{Shared, State},
    shared_log::{AppendError, SharedLog},
    store::SessionStore,
};
use crate::{CancelReason, ChunkStream};

/// The maximum bytes of the entries of one record; a record has at least one.
const MAX_RECORD: usize = 256 * 1024;
/// The time for which an entry waits for a log that cannot be reached. Readers wait as long.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(250);

/// Writes the sessions of this server. Readers see an entry after it is stored.
pub(crate) struct Replicator {
    pub(crate) log: Arc<dyn SharedLog>,
    max_bytes: usize,
    events: Handle,
    tasks: Mutex<JoinSet<()>>,
    /// Notified when a session is written.
    idle: Arc<Notify>,
}

/// The next entries of a session.
struct Entries {
    lines: String,
    after: u64,
    /// The position after the last of these entries.
    to: u64,
}

/// The next step of writing.
enum Next {
    Entries(Entries),
    Nothing,
    /// The session cannot be stored any more.
    Lost,
}

impl Replicator {
    /// Creates the writer. Must be called within a tokio runtime.
    pub(crate) fn new(log: Arc<dyn SharedLog>, max_bytes: usize) -> Self {
        let (tasks, idle) = Default::default();
        Self { log, max_bytes, events: Handle::current(), tasks, idle }
    }

    /// Writes the new entries of a session. No other task does so: [`State::wake`] names the writer once until the entries are
    /// taken.
    pub(crate) fn write(&self, session: &Arc<Shared>) {
        let log = Arc::clone(&self.log);
        let session = Arc::clone(session);
        let idle = Arc::clone(&self.idle);
        let max_bytes = self.max_bytes;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Ended tasks stay in the set until they are joined.
        while tasks.try_join_next().is_some() {}
        let writing = async move {
            write(&*log, &session, max_bytes).await;
            idle.notify_waiters();
        };
        tasks.spawn_on(writing, &self.events);
    }

    /// Waits until every session is written.
    pub(crate) async fn flush(&self) {
        loop {
            let idle = self.idle.notified();
            let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
            drop(idle);
        }
    }
}

async fn write(log: &dyn SharedLog, session: &Shared, max_bytes: usize) {
    loop {
        let next = next(&mut session.lock(), max_bytes);
        let entries = match next {
            Next::Entries(entries) => entries,
            Next::Nothing => return,
            Next::Lost => return in_memory_only(session, "its log is too long"),
        };
        match append(log, &session.id, &entries).await {
            Ok(number) => {
                if let Some(stored) = &mut session.lock().persistence {
                    stored.record = number;
                }
                session.show(entries.to);
            }
            Err(AppendError::Superseded) => return superseded(session),
            Err(error) => return in_memory_only(session, &error.to_string()),
        }
    }
}

/// Takes the entries that are not written yet.
fn next(state: &mut State, max_bytes: usize) -> Next {
    let end = state.log.end();
    let Some(stored) = &mut state.persistence else { return Next::Nothing };
    if stored.written == end {
        stored.is_queued = false;
        return Next::Nothing;
    }
    let Ok((lines, marks)) = state.log.copy(stored.written, end, MAX_RECORD) else { return Next::Lost };
    stored.written += marks.len() as u64;
    stored.bytes += lines.len();
    if stored.bytes > max_bytes {
        return Next::Lost;
    }
    let header = std::mem::take(&mut stored.header);
    Next::Entries(Entries { lines: header + &lines, after: stored.record, to: stored.written })
}

/// Appends entries, again after an error while the log may come back.
async fn append(log: &dyn SharedLog, id: &str, entries: &Entries) -> Result<u64, AppendError> {
    let begun = Instant::now();
    loop {
        match log.append(id, entries.after, entries.lines.clone()).await {
            Err(AppendError::Unavailable(_)) if begun.elapsed() < PATIENCE => tokio::time::sleep(AGAIN).await,
            ended => return ended,
        }
    }
}

/// Continues a session without the other servers. One of them may start its run again.
fn in_memory_only(session: &Shared, reason: &str) {
    tracing::warn!(session = session.id, reason, "other servers cannot resume a session");
    session.lock().persistence = None;
    session.notify();
}

/// Ends a run that another server has started again.
fn superseded(session: &Shared) {
    tracing::warn!(session = session.id, "another server has continued a session");
    let mut state = session.lock();
    state.persistence = None;
    state.is_superseded = true;
    // Not as cancelled: the run continues elsewhere, and its readers may resume it there.
    state.cancellation.cancel(crate::CancelReason::Shutdown);
    drop(state);
    session.notify();
}

// Writes a run's chunks to its session's log.

/// The run of a session. It always writes exactly one final event, even when it panics or is dropped.
pub(crate) struct SessionWriter {
    store: Arc<SessionStore>,
    session: Arc<Shared>,
    /// Held until the run has ended.
    permit: Option<Box<dyn Any + Send>>,
    has_ended: bool,
}

impl SessionWriter {
    pub(crate) fn new(store: Arc<SessionStore>, session: Arc<Shared>, permit: Box<dyn Any + Send>) -> Self {
        Self { store, session, permit: Some(permit), has_ended: false }
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
        self.permit = None; // release the permit before a reader sees the final event and starts the next run
        self.store.end(&self.session, end);
    }
}

impl Drop for SessionWriter {
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
