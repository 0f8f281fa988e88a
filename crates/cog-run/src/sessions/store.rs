//! The store of sessions: limits their number, lifetime and size.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_spec::Chunk;
use tokio::{sync::Notify, time::Instant};

use super::{
    SessionError, SessionState,
    file::{self, Found},
    journal::{self, Journal},
    session::SessionSettings,
    shared::{Persistence, Shared, State, Wake},
    shared_log::{LogRecord, Replicator, SharedLog},
};
use crate::{CancelReason, Cancellation, call_log::CallLog, media_files::MediaFiles};

/// The maximum bytes of a log. Its marks are 32-bit offsets.
const MAX_LOG: usize = 1 << 30;

/// All sessions of a store. The table is locked before a session, never after it; what happens for each chunk locks only its
/// session.
///
/// Finished sessions are removed from the owner who has the most, the oldest first:
/// so no client removes what another has paid for. Running sessions are never removed.
pub(crate) struct SessionStore {
    pub(crate) settings: SessionSettings,
    table: Mutex<Table>,
    journal: Option<Journal>,
    /// The writer to a log that several servers share.
    pub(crate) replicator: Option<Replicator>,
    /// The media of inputs.
    media: Arc<MediaFiles>,
    /// The bytes of all sessions together.
    bytes: AtomicUsize,
    /// Notified when the last running session ends.
    idle: Notify,
}

impl SessionStore {
    /// Opens a store with these settings, and restores the sessions on disk.
    pub(crate) fn open(settings: SessionSettings) -> Result<Self, SessionError> {
        let settings =
            SessionSettings { max_session_bytes: settings.max_session_bytes.min(MAX_LOG), ..settings };
        let directory = settings.state_dir.as_ref().map(|directory| directory.join("sessions"));
        let journal = directory
            .as_ref()
            .map(|directory| Journal::open(directory, settings.max_session_bytes))
            .transpose()?;
        let media = match &directory {
            Some(directory) => MediaFiles::in_directory(&directory.join("media"))
                .map_err(|source| SessionError::Directory { path: directory.clone(), source })?,
            None => MediaFiles::in_memory(),
        };
        let bytes = AtomicUsize::new(0);
        let idle = Notify::new();
        let media = Arc::new(media);
        let (table, replicator) = Default::default();
        let store = Self { settings, table, journal, replicator, media, bytes, idle };
        if let Some(directory) = directory {
            store
                .restore(&directory)
                .map_err(|source| SessionError::Directory { path: directory, source })?;
        }
        Ok(store)
    }

    /// Opens a store whose sessions are in a log that several servers share. Must be called within a tokio runtime.
    pub(crate) fn open_shared(
        settings: SessionSettings,
        log: Arc<dyn SharedLog>,
    ) -> Result<Self, SessionError> {
        let mut store = Self::open(SessionSettings { state_dir: None, ..settings })?;
        store.replicator = Some(Replicator::new(log, store.settings.max_session_bytes));
        Ok(store)
    }

    /// Whether sessions are stored outside the memory.
    fn is_stored(&self) -> bool {
        self.journal.is_some() || self.replicator.is_some()
    }

    fn restore(&self, directory: &Path) -> io::Result<()> {
        for file in file::list(directory)? {
            match file::read(&file, &self.media) {
                Ok(Some(found)) if found.age <= self.settings.ttl => self.restore_session(found),
                Ok(_) => drop(std::fs::remove_file(&file.path)),
                Err(error) => {
                    tracing::warn!("cannot read {}; the session is skipped: {error}", file.path.display());
                }
            }
        }
        file::remove_call_logs(directory, |id| self.is_interrupted(id))?;
        let sessions: Vec<_> = self.lock().sessions.values().cloned().collect();
        let logs =
            sessions.iter().filter_map(|session| session.lock().spec.as_ref()?.context.call_log.clone());
        logs.for_each(|log| log.restore_media());
        self.media.remove_unreferenced();
        Ok(())
    }

    fn is_interrupted(&self, id: &str) -> bool {
        let table = self.lock();
        table.sessions.get(id).is_some_and(|session| session.lock().stage == SessionState::Interrupted)
    }

    /// Adds a session that an earlier program stored.
    fn restore_session(&self, found: Found) {
        let age = found.age;
        let session = Arc::new(Shared::restored(found, self.settings.recovery));
        let mut table = self.lock();
        let mut state = session.lock();
        state.log.bound(self.settings.max_session_bytes);
        table.insert(&session, &mut state);
        state.finished_key = Some(table.add_finished(&session, age));
        self.recount(&mut state);
        let wake = state.wake();
        drop(state);
        self.expire(&mut table);
        drop(table);
        self.notify(&session, &wake);
        self.make_room(&session);
    }

    /// Creates the log of the tool calls of a new session.
    pub(crate) fn call_log(&self, id: &str, owner: &str) -> CallLog {
        let directory = self.settings.state_dir.as_ref().map(|directory| directory.join("sessions"));
        let path = directory.map(|directory| file::call_log(&journal::path_of(&directory, id)));
        CallLog::new(path, owner, Arc::clone(&self.media))
    }

    /// Adds a running session.
    pub(crate) fn add(&self, session: &Arc<Shared>) {
        let mut table = self.lock();
        let mut state = session.lock();
        if let Some(spec) = state.spec.as_ref().filter(|_| self.is_stored()) {
            state.persistence = Some(Persistence::new(file::header(session, spec)));
        }
        table.insert(session, &mut state);
        self.recount(&mut state);
        drop(state);
        self.expire(&mut table);
        drop(table);
        self.make_room(session);
    }

    /// Returns the session of this id, when it belongs to this owner.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<Shared>> {
        let mut table = self.lock();
        self.expire(&mut table);
        table.sessions.get(id).filter(|session| session.owner == owner).cloned()
    }

    /// Appends chunks of a run.
    pub(crate) fn write(&self, session: &Arc<Shared>, chunks: &[Chunk]) {
        let mut state = session.lock();
        for chunk in chunks {
            // A restarted run begins with a meta chunk, but each reader gets its own.
            if !matches!(chunk, Chunk::Meta { .. }) || state.log.end() == 0 {
                state.log.push(chunk);
            }
        }
        state.log.bound(self.settings.max_session_bytes);
        self.recount(&mut state);
        let wake = state.wake();
        drop(state);
        self.notify(session, &wake);
        self.make_room(session);
    }

    /// Notifies the receiver of new entries.
    fn notify(&self, session: &Arc<Shared>, wake: &Wake) {
        match (wake, &self.journal, &self.replicator) {
            (Wake::Writer, Some(journal), _) => journal.write(session),
            (Wake::Writer, None, Some(replicator)) => replicator.write(session),
            (Wake::None, ..) => {}
            _ => session.notify(),
        }
    }

    /// Appends the final event of a run.
    pub(crate) fn end(&self, session: &Arc<Shared>, end: &Chunk) {
        let mut table = self.lock();
        let mut state = session.lock();
        let stage = SessionState::after(end);
        // The client cancelled the session, but something else ended its run first: it must not be offered to resume.
        if stage == SessionState::Interrupted && state.is_cancelled {
            let mut end = end.clone();
            if let Chunk::Error { error, recovery, .. } = &mut end {
                (**error, *recovery) = (CancelReason::Cancelled.error(), None);
            }
            state.log.push(&end);
            state.close(SessionState::Cancelled);
        } else {
            state.log.push(end);
            state.close(stage);
        }
        state.log.bound(self.settings.max_session_bytes);
        state.finished_key = state.counted.map(|_| table.add_finished(session, Duration::ZERO));
        self.recount(&mut state);
        let wake = state.wake();
        drop(state);
        self.notify(session, &wake);
        self.expire(&mut table);
        let is_idle = table.running() == 0;
        drop(table); // `make_room` locks it again, only if memory is short
        self.make_room(session);
        if is_idle {
            self.idle.notify_waiters();
        }
    }

    /// Cancels a session permanently, whether it is running or interrupted.
    pub(crate) fn cancel(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        state.is_cancelled = true;
        state.cancellation.cancel(CancelReason::Cancelled);
        if state.stage == SessionState::Interrupted {
            let end = session.final_event(&state.log, CancelReason::Cancelled.error());
            state.reopen();
            state.log.push(&end);
            state.close(SessionState::Cancelled);
            let wake = state.wake();
            drop(state);
            self.notify(session, &wake);
        }
    }

    /// Marks an interrupted session as running. Returns false when it is not interrupted any more.
    pub(crate) fn reopen(&self, session: &Shared, cancellation: Cancellation) -> bool {
        let mut table = self.lock();
        let mut state = session.lock();
        if state.stage != SessionState::Interrupted || state.counted.is_none() {
            return false;
        }
        state.reopen();
        state.stage = SessionState::Running;
        state.cancellation = cancellation;
        if let Some(key) = state.finished_key.take() {
            table.remove_finished(key);
        }
        true
    }

    /// Cancels all running sessions.
    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        for session in self.lock().sessions.values() {
            session.lock().cancellation.cancel(reason);
        }
    }

    /// Waits until no session is running, and all entries are written to the files.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.running() == 0 {
                break;
            }
            idle.await;
        }
        if let Some(journal) = &self.journal {
            journal.flush().await;
        }
        if let Some(replicator) = &self.replicator {
            replicator.flush().await;
        }
    }

    /// Returns the number of running sessions.
    pub(crate) fn running(&self) -> usize {
        self.lock().running()
    }

    /// Returns the number of sessions in each state.
    pub(crate) fn count_by_state(&self) -> [(SessionState, usize); 5] {
        let table = self.lock();
        let mut counts = SessionState::ALL.map(|state| (state, 0));
        for session in table.sessions.values() {
            let state = session.lock().stage;
            for (_, count) in counts.iter_mut().filter(|(counted, _)| *counted == state) {
                *count += 1;
            }
        }
        counts
    }

    /// Returns the number of sessions whose file could not be written.
    pub(crate) fn count_not_on_disk(&self) -> usize {
        if !self.is_stored() {
            return 0;
        }
        let table = self.lock();
        table.sessions.values().filter(|session| session.lock().persistence.is_none()).count()
    }

    /// Removes expired sessions, and returns the time until the next sweep.
    pub(crate) fn sweep(&self) -> Duration {
        let mut table = self.lock();
        self.expire(&mut table);
        let oldest = table.finished.values().next().map(|(ended, _)| *ended);
        let due = oldest.map_or(self.settings.ttl, |ended| self.settings.ttl.saturating_sub(ended.elapsed()));
        due.max(Duration::from_secs(1))
    }

    /// Frees memory when all sessions together exceed the limit. An owner who has more than an equal share pays first, with
    /// finished sessions and then with this growing log. Otherwise the owner with the most pays: with finished sessions, and
    /// where there are none with the logs of running ones.
    fn make_room(&self, session: &Shared) {
        if !self.is_full() {
            return;
        }
        let mut table = self.lock();
        while self.is_full() {
            // Again in each round: an owner whose last session was dropped has no share any more.
            let share = self.settings.max_total_bytes / table.owners().max(1);
            let is_over = table.bytes_of(&session.owner) > share;
            if is_over && self.drop_oldest_of(&mut table, &session.owner) {
                continue;
            }
            let payer = if is_over { None } else { table.largest_owner() };
            if let Some(payer) = payer.filter(|payer| *payer != session.owner)
                && (self.drop_oldest_of(&mut table, &payer) || self.shorten(&table, &payer, share))
            {
                continue;
            }
            let mut state = session.lock();
            state.log.bound(share / table.running_of(&session.owner).max(1));
            self.recount(&mut state);
            break;
        }
    }

    /// Bounds the logs of an owner's running sessions to their share. Returns whether that freed memory.
    fn shorten(&self, table: &Table, owner: &str, share: usize) -> bool {
        let before = self.bytes.load(Ordering::Relaxed);
        let max_bytes = share / table.running_of(owner).max(1);
        for session in table.sessions.values().filter(|session| session.owner == owner) {
            let mut state = session.lock();
            state.log.bound(max_bytes);
            self.recount(&mut state);
        }
        self.bytes.load(Ordering::Relaxed) < before
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.settings.max_total_bytes
    }

    /// Updates the counted bytes of a session.
    fn recount(&self, state: &mut State) {
        let bytes = state.bytes();
        if let Some(counted) = state.counted.as_mut() {
            let before = std::mem::replace(counted, bytes);
            for counter in [Some(&self.bytes), state.owner_bytes.as_deref()].into_iter().flatten() {
                counter.fetch_add(bytes, Ordering::Relaxed);
                counter.fetch_sub(before, Ordering::Relaxed);
            }
        }
    }

    fn expire(&self, table: &mut Table) {
        let SessionSettings { ttl, max_sessions, .. } = self.settings;
        while table.finished.values().next().is_some_and(|(ended, _)| ended.elapsed() > ttl) {
            let oldest = table.finished.keys().next().copied();
            self.drop_finished(table, oldest);
        }
        while table.finished.len() > max_sessions {
            let key = table.oldest_of_most_finished();
            self.drop_finished(table, key);
        }
    }

    /// Removes the oldest finished session of an owner. Returns false when there is none.
    fn drop_oldest_of(&self, table: &mut Table, owner: &str) -> bool {
        let key = table.oldest_of(owner);
        self.drop_finished(table, key)
    }

    /// Removes a finished session. Returns false when there is none.
    fn drop_finished(&self, table: &mut Table, key: Option<u64>) -> bool {
        let Some(session) = key.and_then(|key| table.remove_finished(key)) else { return false };
        self.forget(&session);
        table.remove(&session.id);
        true
    }

    /// Removes a session from the byte count, and removes its file.
    fn forget(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        self.uncount(&mut state);
        state.forget_spec();
        if let (Some(_), Some(journal)) = (&state.persistence, &self.journal) {
            journal.remove(session);
        }
    }

    /// Removes a session from the byte count.
    fn uncount(&self, state: &mut State) {
        let counted = state.counted.take().unwrap_or(0);
        self.bytes.fetch_sub(counted, Ordering::Relaxed);
        if let Some(owner) = state.owner_bytes.take() {
            owner.fetch_sub(counted, Ordering::Relaxed);
        }
    }

    /// Locks the table, always before the lock of a session. The table is consistent between any two
    /// statements.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Sessions of other servers in the store.

/// What this server knows of a session.
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// Its log up to the end, or to an entry that is still followed.
    Current,
    /// An interrupted run, up to this record. Another server may have continued it.
    Interrupted(u64),
}

impl SessionStore {
    /// Returns a session of any owner.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Shared>> {
        self.lock().sessions.get(id).cloned()
    }

    /// Returns what this server knows of a session.
    pub(crate) fn known(&self, id: &str) -> Known {
        let Some(session) = self.get(id) else { return Known::Nothing };
        let state = session.lock();
        match (&state.persistence, state.stage) {
            _ if state.is_superseded => Known::Interrupted(0),
            (Some(stored), SessionState::Interrupted) if !stored.is_queued => {
                Known::Interrupted(stored.record)
            }
            _ => Known::Current,
        }
    }

    /// Whether the run of a session is in progress at this server, or its last entries are not stored yet.
    pub(crate) fn is_running_here(&self, id: &str) -> bool {
        self.get(id).is_some_and(|session| {
            let state = session.lock();
            let is_running = state.stage == SessionState::Running && state.remote.is_none();
            state.persistence.as_ref().is_some_and(|stored| is_running || stored.is_queued)
        })
    }

    /// Adds the session of another server; none when it is known by now. It does not count as running.
    pub(crate) fn add_adopted(&self, mut found: Found, record: &LogRecord) -> Option<Arc<Shared>> {
        found.header.spec.context.call_log = Some(self.call_log(&found.header.id, &found.header.owner));
        let session = Arc::new(Shared::adopted(found, record));
        let mut table = self.lock();
        if table.sessions.contains_key(&session.id) {
            return None;
        }
        let mut state = session.lock();
        table.insert(&session, &mut state);
        state.finished_key = Some(table.add_finished(&session, Duration::ZERO));
        self.update(&mut state);
        drop(state);
        self.expire(&mut table);
        drop(table);
        self.make_room(&session);
        Some(session)
    }

    /// Adds entries that another server has stored. Returns whether there are no more to follow.
    pub(crate) fn append_adopted(&self, session: &Arc<Shared>, record: &LogRecord) -> bool {
        let mut state = session.lock();
        if state.remote.is_none() {
            return true; // it continues at this server
        }
        let lines = record.lines.lines();
        let stages = lines.filter_map(|line| file::append_line(&mut state.log, line));
        let stage = stages.last().unwrap_or(SessionState::Running);
        state.stored_up_to(record.number);
        state.remote = (stage == SessionState::Running).then(|| record.server.clone());
        if stage != SessionState::Running {
            state.close(stage);
        }
        self.update(&mut state);
        drop(state);
        session.notify();
        self.make_room(session);
        stage != SessionState::Running
    }

    /// Ends a run whose server has ended.
    pub(crate) fn interrupt_adopted(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        if state.remote.take().is_none() {
            return;
        }
        let end = match state.is_cancelled {
            true => session.final_event(&state.log, CancelReason::Cancelled.error()),
            false => session.interrupted_event(&state.log, self.settings.recovery),
        };
        state.log.push(&end);
        state.close(SessionState::after(&end));
        self.update(&mut state);
        let wake = state.wake();
        drop(state);
        self.notify(session, &wake);
    }

    /// Removes a session that another server has continued.
    pub(crate) fn release(&self, id: &str) {
        let mut table = self.lock();
        let Some(session) = table.sessions.get(id).cloned() else { return };
        let mut state = session.lock();
        if let Some(key) = state.finished_key.take() {
            table.remove_finished(key);
        }
        self.uncount(&mut state);
        drop(state);
        table.remove(id);
    }

    fn update(&self, state: &mut State) {
        state.log.bound(self.settings.max_session_bytes);
        self.recount(state);
    }
}

// The sessions of a store by id, by their end, and by their owner.

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Arc<Shared>>,
    /// The finished sessions, in the order in which they ended.
    finished: BTreeMap<u64, (Instant, Arc<Shared>)>,
    owners: HashMap<String, Owned>,
    last_key: u64,
}

/// The sessions of one owner.
#[derive(Default)]
struct Owned {
    sessions: usize,
    /// The keys of the finished ones.
    finished: BTreeSet<u64>,
    /// The bytes of all of them.
    bytes: Arc<AtomicUsize>,
}

impl Owned {
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Table {
    fn running(&self) -> usize {
        self.sessions.len() - self.finished.len()
    }

    /// Adds a session.
    fn insert(&mut self, session: &Arc<Shared>, state: &mut State) {
        let owned = self.owners.entry(session.owner.clone()).or_default();
        owned.sessions += 1;
        state.owner_bytes = Some(Arc::clone(&owned.bytes));
        self.sessions.insert(session.id.clone(), Arc::clone(session));
    }

    /// Removes a session that is not among the finished ones any more.
    fn remove(&mut self, id: &str) -> Option<Arc<Shared>> {
        let session = self.sessions.remove(id)?;
        if let Some(owned) = self.owners.get_mut(&session.owner) {
            owned.sessions -= 1;
            if owned.sessions == 0 {
                self.owners.remove(&session.owner);
            }
        }
        Some(session)
    }

    /// Appends a session that ended this long ago to the finished ones. Returns its key.
    fn add_finished(&mut self, session: &Arc<Shared>, age: Duration) -> u64 {
        self.last_key += 1;
        let now = Instant::now();
        self.finished.insert(self.last_key, (now.checked_sub(age).unwrap_or(now), Arc::clone(session)));
        if let Some(owned) = self.owners.get_mut(&session.owner) {
            owned.finished.insert(self.last_key);
        }
        self.last_key
    }

    /// Removes a session from the finished ones.
    fn remove_finished(&mut self, key: u64) -> Option<Arc<Shared>> {
        let (_, session) = self.finished.remove(&key)?;
        if let Some(owned) = self.owners.get_mut(&session.owner) {
            owned.finished.remove(&key);
        }
        Some(session)
    }

    /// Returns the number of owners.
    fn owners(&self) -> usize {
        self.owners.len()
    }

    fn bytes_of(&self, owner: &str) -> usize {
        self.owners.get(owner).map_or(0, Owned::bytes)
    }

    fn running_of(&self, owner: &str) -> usize {
        self.owners.get(owner).map_or(0, |owned| owned.sessions - owned.finished.len())
    }

    /// Returns the owner whose sessions have the most bytes.
    fn largest_owner(&self) -> Option<String> {
        let largest = self.owners.iter().max_by_key(|(_, owned)| owned.bytes());
        largest.map(|(owner, _)| owner.clone())
    }

    /// Returns the key of the owner's session that ended first.
    fn oldest_of(&self, owner: &str) -> Option<u64> {
        self.owners.get(owner)?.finished.first().copied()
    }

    /// Returns the key of the session that ended first, of the owner who has the most finished ones.
    fn oldest_of_most_finished(&self) -> Option<u64> {
        let most = self.owners.values().filter_map(|owned| {
            let oldest = owned.finished.first()?;
            Some((owned.finished.len(), Reverse(*oldest)))
        });
        most.max().map(|(_, Reverse(key))| key)
    }
}
