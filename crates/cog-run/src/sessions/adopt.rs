//! Takes sessions of other servers from the log that they share.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use super::{
    ResumeError, SessionState, Sessions,
    file::{self, Found, Header},
    log::Log,
    shared::Shared,
    shared_log::{AppendError, LogReading, LogRecord, LogRequest, LogStream, SharedLog},
    store::{Known, SessionStore},
};

/// The time without a record after which a request to the server of a run checks that it is in progress.
const CHECK_AFTER: Duration = Duration::from_secs(2);

/// A session of another server, up to now.
struct Adopted {
    found: Found,
    /// The last record.
    record: LogRecord,
    records: LogStream<LogRecord>,
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
    pub(super) fn reply_to_others(&self, mut requests: LogStream<LogRequest>) {
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
    records: LogStream<LogRecord>,
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
