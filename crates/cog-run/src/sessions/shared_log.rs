//! The interface of a log that several servers share, and through which any of them resumes a session.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cog_spec::{Chunk, Code, ErrorBody};
use futures_util::{StreamExt as _, future::BoxFuture, stream::BoxStream};
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    ResumeError, SessionState, Sessions,
    file::{self, Found, Header},
    log::Log,
    shared::{Shared, State},
    store::{Known, SessionStore},
};
use crate::{CancelReason, ChunkStream};

/// The sessions of several servers. Each session has records, in order: lines of JSON, the first of which describes the run.
///
/// Only one server writes to a session at a time. The others notice by [`AppendError::Superseded`] that it is not theirs any more.
pub trait SharedLog: Send + Sync {
    /// Appends lines to a session, unless its last record is not `after`; 0 for none. Returns the number of the new record, once
    /// it is stored.
    fn append(&self, id: &str, after: u64, lines: String) -> BoxFuture<'static, Result<u64, AppendError>>;

    /// Reads a session: the records so far, and those that follow.
    fn read(&self, id: &str) -> BoxFuture<'static, Result<LogReading, AppendError>>;

    /// Returns whether the run of a session is in progress at a server. A server that does not reply runs nothing.
    fn is_running(&self, server: &str, id: &str) -> BoxFuture<'static, bool>;

    /// Requests that a server cancels the run of a session.
    fn cancel(&self, server: &str, id: &str) -> BoxFuture<'static, ()>;

    /// Returns the requests of the other servers to this one.
    fn requests(&self) -> BoxStream<'static, LogRequest>;
}

/// The records of a session.
pub struct LogReading {
    /// The number of the last record so far; 0 for none.
    pub last: u64,
    /// The records from the first one on, without end.
    pub records: BoxStream<'static, LogRecord>,
}

/// A record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number. The numbers of a session increase.
    pub number: u64,
    /// The server that wrote it.
    pub server: String,
    /// Complete lines.
    pub lines: String,
}

/// A request of another server.
pub struct LogRequest {
    /// The session.
    pub id: String,
    /// Whether its run is to be cancelled.
    pub cancels: bool,
    /// Sends the reply: whether the run is in progress.
    pub reply: Box<dyn FnOnce(bool) + Send>,
}

/// Why lines were not appended, or records not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another server has appended to the session.
    #[error("another server has continued the session")]
    Superseded,
    /// The log cannot store these lines.
    #[error("{0}")]
    Refused(String),
    /// The log cannot be reached now.
    #[error("{0}")]
    Unavailable(String),
}

// Takes sessions of other servers from the log that they share.

/// The time without a record after which a request to the server of a run checks that it is in progress.
const CHECK_AFTER: Duration = Duration::from_secs(2);

/// A session of another server, up to now.
struct Adopted {
    found: Found,
    /// The last record.
    record: LogRecord,
    records: BoxStream<'static, LogRecord>,
}

impl Sessions {
    /// Looks for a session in the log that several servers share, unless it is known here. Does nothing without such a log.
    ///
    /// Call it before a request that names a session.
    ///
    /// # Errors
    /// [`ResumeError::Unavailable`] if the session is not known here, and the log cannot be read now.
    pub async fn adopt(&self, id: &str, owner: &str) -> Result<(), ResumeError> {
        let store = &self.0.store;
        let Some(replicator) = &store.replicator else { return Ok(()) };
        let known = store.known(id);
        if file::id_of(&format!("{id}.ndjson")).is_none() || matches!(known, Known::Current) {
            return Ok(());
        }
        // An interrupted session that is known here may have been continued by another server since: the log decides.
        match read(&*replicator.log, id).await {
            Ok(Some(adopted)) if matches!(known, Known::Interrupted(last) if last == adopted.record.number) =>
                {}
            Ok(Some(adopted)) if adopted.found.header.owner == owner => {
                store.release(id);
                self.follow_adopted(adopted);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(session = id, %error, "cannot look for a session of another server");
                if matches!(known, Known::Nothing) {
                    return Err(ResumeError::Unavailable);
                }
            }
        }
        Ok(())
    }

    fn follow_adopted(&self, adopted: Adopted) {
        let store = &self.0.store;
        let Some(replicator) = &store.replicator else { return };
        let Adopted { found, record, records } = adopted;
        let stage = found.state;
        let Some(session) = store.add_adopted(found, &record) else { return };
        if stage == SessionState::Running {
            let follower =
                Follower { log: Arc::clone(&replicator.log), session, server: record.server, records };
            let store = Arc::clone(store);
            self.0.sweeping().spawn(async move { follower.run(&store).await });
        }
    }

    /// Cancels a run of another server. Returns false for a run of this one.
    pub(super) fn cancel_elsewhere(&self, session: &Arc<Shared>) -> bool {
        let mut state = session.lock();
        let (Some(replicator), Some(server)) = (&self.0.store.replicator, state.remote.clone()) else {
            return false;
        };
        state.is_cancelled = true;
        drop(state);
        self.0.sweeping().spawn(replicator.log.cancel(&server, &session.id));
        true
    }

    /// Replies to the other servers.
    pub(super) fn reply_to_others(&self, mut requests: BoxStream<'static, LogRequest>) {
        let store = Arc::downgrade(&self.0.store);
        self.0.sweeping().spawn(async move {
            while let (Some(request), Some(store)) = (requests.next().await, store.upgrade()) {
                let LogRequest { id, cancels, reply } = request;
                reply(store.is_running_here(&id));
                if let Some(session) = store.get(&id).filter(|_| cancels) {
                    store.cancel(&session);
                }
            }
        });
    }
}

/// Reads the records of a session so far; none for an unknown session.
async fn read(log: &dyn SharedLog, id: &str) -> Result<Option<Adopted>, AppendError> {
    let LogReading { last, mut records } = log.read(id).await?;
    let mut header = None;
    let mut entries = Log::default();
    let mut state = SessionState::Running;
    if last == 0 {
        return Ok(None);
    }
    while let Some(record) = records.next().await {
        let mut lines = record.lines.lines();
        if header.is_none() {
            header = lines.next().and_then(Header::read).filter(|header| header.id == id);
        }
        if header.is_none() {
            break;
        }
        for line in lines {
            state = file::append_line(&mut entries, line).unwrap_or(state);
        }
        if record.number >= last {
            let Some(header) = header else { break };
            let found = Found { header, log: entries, state, age: Duration::ZERO };
            return Ok(found.log.meta().is_some().then_some(Adopted { found, record, records }));
        }
    }
    Ok(None)
}

/// Copies the entries of a run at another server.
struct Follower {
    log: Arc<dyn SharedLog>,
    session: Arc<Shared>,
    server: String,
    records: BoxStream<'static, LogRecord>,
}

impl Follower {
    /// Follows until the run has ended, or its server has.
    async fn run(mut self, store: &SessionStore) {
        let mut is_missed = false;
        loop {
            let check_at = Instant::now() + CHECK_AFTER;
            tokio::select! {
                record = self.records.next() => match record {
                    Some(record) => {
                        is_missed = false;
                        if self.append(store, record) {
                            return;
                        }
                    }
                    None => return store.interrupt_adopted(&self.session),
                },
                () = sleep_until(check_at) => {
                    let is_running = self.log.is_running(&self.server, &self.session.id).await;
                    // Records that were on their way come first.
                    if !is_running && std::mem::replace(&mut is_missed, true) {
                        return store.interrupt_adopted(&self.session);
                    }
                    is_missed = !is_running;
                }
            }
        }
    }

    /// Adds the entries of a record. Returns whether the run has ended, or continues at this server.
    fn append(&mut self, store: &SessionStore, record: LogRecord) -> bool {
        self.server.clone_from(&record.server);
        store.append_adopted(&self.session, &record)
    }
}

// Writes sessions to a log that several servers share.

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
