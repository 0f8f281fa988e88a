//! Sessions of other servers in the store.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        SessionState,
        file::{self, Found},
        shared::{Shared, State},
        shared_log::LogRecord,
    },
    SessionStore,
};
use crate::CancelReason;

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
