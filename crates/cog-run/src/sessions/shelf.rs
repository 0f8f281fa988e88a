//! Where sessions are kept: how many, how long, how large.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_spec::Chunk;
use tokio::{sync::Notify, time::Instant};

use super::{
    SessionSettings, SessionState,
    shared::{Shared, State},
};
use crate::{Stop, StopReason};

/// All sessions of a store. What was over longest leaves first; what runs never leaves.
pub(crate) struct Shelf {
    pub(crate) settings: SessionSettings,
    table: Mutex<Table>,
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

impl Shelf {
    pub(crate) fn new(settings: SessionSettings) -> Self {
        Self { settings, table: Mutex::default(), bytes: AtomicUsize::new(0), idle: Notify::new() }
    }

    /// Takes in a session that runs.
    pub(crate) fn add(&self, session: &Arc<Shared>) {
        let mut table = self.lock();
        self.expire(&mut table);
        table.sessions.insert(session.id.clone(), Arc::clone(session));
        self.recount(&mut session.lock());
        drop(table);
        self.make_room(session);
    }

    /// The session of this id, where it is this owner's.
    pub(crate) fn find(&self, id: &str, owner: &str) -> Option<Arc<Shared>> {
        let mut table = self.lock();
        self.expire(&mut table);
        table.sessions.get(id).filter(|session| session.owner == owner).cloned()
    }

    /// Writes a chunk of a run that goes on.
    pub(crate) fn write(&self, session: &Shared, chunk: &Chunk) {
        let mut state = session.lock();
        if matches!(chunk, Chunk::Meta { .. }) && state.log.end() > 0 {
            return; // the run of a resumed session begins with one; each reader was given its own
        }
        state.log.push(chunk);
        state.log.bound(self.settings.session_bytes);
        self.recount(&mut state);
        drop(state);
        session.tell();
        self.make_room(session);
    }

    /// Writes the end of a run.
    pub(crate) fn end(&self, session: &Arc<Shared>, end: &Chunk) {
        let mut table = self.lock();
        let mut state = session.lock();
        state.log.push(end);
        state.log.bound(self.settings.session_bytes);
        state.close(SessionState::after(end));
        state.ticket = Some(table.take_over(session));
        self.recount(&mut state);
        drop(state);
        self.expire(&mut table);
        let is_idle = table.running() == 0;
        drop(table);
        session.tell();
        self.make_room(session);
        if is_idle {
            self.idle.notify_waiters();
        }
    }

    /// Ends a session for good: the run that goes on, or the hope that an interrupted one will.
    pub(crate) fn cancel(&self, session: &Shared) {
        let mut state = session.lock();
        state.stop.now(StopReason::Cancelled);
        if state.stage == SessionState::Interrupted {
            state.log.reopen();
            state.log.push(&session.error(StopReason::Cancelled.error()));
            state.close(SessionState::Cancelled);
        }
    }

    /// Has a session run again whose run was interrupted; false where that is not so any more.
    pub(crate) fn reopen(&self, session: &Shared, stop: Stop) -> bool {
        let mut table = self.lock();
        let mut state = session.lock();
        if state.stage != SessionState::Interrupted || state.counted.is_none() {
            return false;
        }
        state.log.reopen();
        state.stage = SessionState::Running;
        state.stop = stop;
        if let Some(ticket) = state.ticket.take() {
            table.over.remove(&ticket);
        }
        true
    }

    /// Stops all that run.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        for session in self.lock().sessions.values() {
            session.lock().stop.now(reason);
        }
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let told = self.idle.notified();
            if self.lock().running() == 0 {
                return;
            }
            told.await;
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

    /// Makes room where all sessions together take up too much: by letting go what is over, else by shortening the
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
        let counted = session.lock().counted.take();
        self.bytes.fetch_sub(counted.unwrap_or(0), Ordering::Relaxed);
        true
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

    /// Puts a session behind those that were over before it; its ticket.
    fn take_over(&mut self, session: &Arc<Shared>) -> u64 {
        self.tickets += 1;
        self.over.insert(self.tickets, (Instant::now(), Arc::clone(session)));
        self.tickets
    }
}
