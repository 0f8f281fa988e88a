//! Where sessions are kept: how many, how long, how large.

use std::{
    collections::{BTreeMap, HashMap},
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
    error::SessionError,
    file,
    header::Found,
    info::SessionState,
    journal::Journal,
    settings::SessionSettings,
    shared::{Persistence, Shared, State, Told},
};
use crate::{CancelReason, Cancellation};

/// The bytes of a log at most: the marks count in 32 bits.
const MAX_LOG: usize = 1 << 30;

/// All sessions of a store. What was over longest leaves first; what runs never leaves.
pub(crate) struct SessionStore {
    pub(crate) settings: SessionSettings,
    table: Mutex<Table>,
    journal: Option<Journal>,
    /// The bytes of all sessions together.
    bytes: AtomicUsize,
    /// Told when no session runs any more.
    idle: Notify,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Arc<Shared>>,
    /// Those that run no more, in the order in which they ended.
    over: BTreeMap<u64, (Instant, Arc<Shared>)>,
    tickets: u64,
}

impl SessionStore {
    /// The sessions of these settings, with those that a program before this one kept on disk.
    pub(crate) fn open(settings: SessionSettings) -> Result<Self, SessionError> {
        let settings = SessionSettings { session_bytes: settings.session_bytes.min(MAX_LOG), ..settings };
        let directory = settings.state_dir.as_ref().map(|directory| directory.join("sessions"));
        let journal = directory
            .as_ref()
            .map(|directory| Journal::open(directory, settings.session_bytes))
            .transpose()?;
        let (bytes, idle) = (AtomicUsize::new(0), Notify::new());
        let shelf = Self { settings, table: Mutex::default(), journal, bytes, idle };
        if let Some(directory) = directory {
            shelf
                .restore(&directory)
                .map_err(|source| SessionError::Directory { path: directory, source })?;
        }
        Ok(shelf)
    }

    fn restore(&self, directory: &Path) -> io::Result<()> {
        for (path, age) in file::list(directory)? {
            match file::read(&path, age) {
                Ok(Some(found)) if age <= self.settings.keep => self.take_in(found),
                Ok(_) => drop(std::fs::remove_file(&path)),
                Err(error) => tracing::warn!("{} cannot be read, and is left alone: {error}", path.display()),
            }
        }
        Ok(())
    }

    /// MediaCapabilities in a session that a program before this one kept.
    fn take_in(&self, found: Found) {
        let age = found.age;
        let session = Arc::new(Shared::restored(found, self.settings.recovery));
        let mut table = self.lock();
        let mut state = session.lock();
        state.log.bound(self.settings.session_bytes);
        state.ticket = Some(table.take_over(&session, age));
        self.recount(&mut state);
        let told = state.told();
        drop(state);
        table.sessions.insert(session.id.clone(), Arc::clone(&session));
        self.expire(&mut table);
        drop(table);
        self.tell(&session, &told);
        self.make_room(&session);
    }

    /// MediaCapabilities in a session that runs.
    pub(crate) fn add(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        if let (Some(_), Some(spec)) = (&self.journal, &state.spec) {
            state.kept = Some(Persistence::new(file::header(session, spec)));
        }
        self.recount(&mut state);
        drop(state);
        let mut table = self.lock();
        self.expire(&mut table);
        table.sessions.insert(session.id.clone(), Arc::clone(session));
        drop(table);
        self.make_room(session);
    }

    /// The session of this id, where it is this owner's.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<Shared>> {
        let mut table = self.lock();
        self.expire(&mut table);
        table.sessions.get(id).filter(|session| session.owner == owner).cloned()
    }

    /// Writes chunks of a run that goes on.
    pub(crate) fn write(&self, session: &Arc<Shared>, chunks: &[Chunk]) {
        let mut state = session.lock();
        for chunk in chunks {
            // The run of a resumed session begins with a meta chunk; each reader was given its own.
            if !matches!(chunk, Chunk::Meta { .. }) || state.log.end() == 0 {
                state.log.push(chunk);
            }
        }
        state.log.bound(self.settings.session_bytes);
        self.recount(&mut state);
        let told = state.told();
        drop(state);
        self.tell(session, &told);
        self.make_room(session);
    }

    /// Tells of what was written into a log.
    fn tell(&self, session: &Arc<Shared>, told: &Told) {
        match (told, &self.journal) {
            (Told::Writer, Some(journal)) => journal.write(session),
            (Told::Nobody, _) => {}
            _ => session.tell(),
        }
    }

    /// Writes the end of a run.
    pub(crate) fn end(&self, session: &Arc<Shared>, end: &Chunk) {
        let mut table = self.lock();
        let mut state = session.lock();
        let stage = SessionState::after(end);
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
        state.log.bound(self.settings.session_bytes);
        state.ticket = state.counted.map(|_| table.take_over(session, Duration::ZERO));
        self.recount(&mut state);
        let told = state.told();
        drop(state);
        self.tell(session, &told);
        self.expire(&mut table);
        let is_idle = table.running() == 0;
        drop(table);
        self.make_room(session);
        if is_idle {
            self.idle.notify_waiters();
        }
    }

    /// Ends a session for good: the run that goes on, or the hope that an interrupted one will.
    pub(crate) fn cancel(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        state.is_cancelled = true;
        state.stop.now(CancelReason::Cancelled);
        if state.stage == SessionState::Interrupted {
            let end = session.end(&state.log, CancelReason::Cancelled.error());
            state.reopen();
            state.log.push(&end);
            state.close(SessionState::Cancelled);
            let told = state.told();
            drop(state);
            self.tell(session, &told);
        }
    }

    /// Has a session run again whose run was interrupted; false where that is not so any more.
    pub(crate) fn reopen(&self, session: &Shared, stop: Cancellation) -> bool {
        let mut table = self.lock();
        let mut state = session.lock();
        if state.stage != SessionState::Interrupted || state.counted.is_none() {
            return false;
        }
        state.reopen();
        state.stage = SessionState::Running;
        state.stop = stop;
        if let Some(ticket) = state.ticket.take() {
            table.over.remove(&ticket);
        }
        true
    }

    /// Stops all that run.
    pub(crate) fn stop_all(&self, reason: CancelReason) {
        for session in self.lock().sessions.values() {
            session.lock().stop.now(reason);
        }
    }

    /// Waits until nothing runs, and everything told is in the files.
    pub(crate) async fn idle(&self) {
        loop {
            let told = self.idle.notified();
            if self.running() == 0 {
                break;
            }
            told.await;
        }
        if let Some(journal) = &self.journal {
            journal.flush().await;
        }
    }

    /// How many sessions run.
    pub(crate) fn running(&self) -> usize {
        self.lock().running()
    }

    /// How many sessions are in each state.
    pub(crate) fn tally(&self) -> [(SessionState, usize); 5] {
        let table = self.lock();
        let mut tally = SessionState::ALL.map(|state| (state, 0));
        for session in table.sessions.values() {
            let state = session.lock().stage;
            for (_, count) in tally.iter_mut().filter(|(counted, _)| *counted == state) {
                *count += 1;
            }
        }
        tally
    }

    /// Lets go what has been over for too long, and says when to look again.
    pub(crate) fn sweep(&self) -> Duration {
        let mut table = self.lock();
        self.expire(&mut table);
        let oldest = table.over.values().next().map(|(ended, _)| *ended);
        let due =
            oldest.map_or(self.settings.keep, |ended| self.settings.keep.saturating_sub(ended.elapsed()));
        due.max(Duration::from_secs(1))
    }

    /// MediaSink room where all sessions together take up too much: by letting go what is over, else by shortening the
    /// log of this one, which grows, to its share.
    fn make_room(&self, session: &Shared) {
        if !self.is_full() {
            return;
        }
        let mut table = self.lock();
        while self.is_full() && self.drop_oldest(&mut table) {}
        if self.is_full() {
            let mut state = session.lock();
            state.log.bound(self.settings.bytes / table.running().max(1));
            self.recount(&mut state);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.settings.bytes
    }

    /// Counts what a session takes up now.
    fn recount(&self, state: &mut State) {
        let bytes = state.bytes();
        if let Some(counted) = state.counted.as_mut() {
            let before = std::mem::replace(counted, bytes);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.bytes.fetch_sub(before, Ordering::Relaxed);
        }
    }

    fn expire(&self, table: &mut Table) {
        let SessionSettings { keep, finished, .. } = self.settings;
        while table.over.len() > finished
            || table.over.values().next().is_some_and(|(ended, _)| ended.elapsed() > keep)
        {
            self.drop_oldest(table);
        }
    }

    /// Lets go of what was over longest; false where nothing is over.
    fn drop_oldest(&self, table: &mut Table) -> bool {
        let Some((_, (_, session))) = table.over.pop_first() else { return false };
        table.sessions.remove(&session.id);
        self.forget(&session);
        true
    }

    /// Counts a session no more, and removes its file.
    fn forget(&self, session: &Arc<Shared>) {
        let mut state = session.lock();
        let counted = state.counted.take();
        self.bytes.fetch_sub(counted.unwrap_or(0), Ordering::Relaxed);
        if let (Some(_), Some(journal)) = (&state.kept, &self.journal) {
            journal.remove(session);
        }
    }

    /// Always taken before the lock of a session. The table is whole between any two statements.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn running(&self) -> usize {
        self.sessions.len() - self.over.len()
    }

    /// Puts a session that has been over for so long behind those that were over before it; its ticket.
    fn take_over(&mut self, session: &Arc<Shared>, age: Duration) -> u64 {
        self.tickets += 1;
        let now = Instant::now();
        self.over.insert(self.tickets, (now.checked_sub(age).unwrap_or(now), Arc::clone(session)));
        self.tickets
    }
}
