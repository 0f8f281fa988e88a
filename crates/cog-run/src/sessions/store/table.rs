//! The sessions of a store by id, by their end, and by their owner.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::super::shared::{Shared, State};

#[derive(Default)]
pub(super) struct Table {
    pub(super) sessions: HashMap<String, Arc<Shared>>,
    /// The finished sessions, in the order in which they ended.
    pub(super) finished: BTreeMap<u64, (Instant, Arc<Shared>)>,
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
    pub(super) fn running(&self) -> usize {
        self.sessions.len() - self.finished.len()
    }

    /// Adds a session.
    pub(super) fn insert(&mut self, session: &Arc<Shared>, state: &mut State) {
        let owned = self.owners.entry(session.owner.clone()).or_default();
        owned.sessions += 1;
        state.owner_bytes = Some(Arc::clone(&owned.bytes));
        self.sessions.insert(session.id.clone(), Arc::clone(session));
    }

    /// Removes a session that is not among the finished ones any more.
    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Shared>> {
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
    pub(super) fn add_finished(&mut self, session: &Arc<Shared>, age: Duration) -> u64 {
        self.last_key += 1;
        let now = Instant::now();
        self.finished.insert(self.last_key, (now.checked_sub(age).unwrap_or(now), Arc::clone(session)));
        if let Some(owned) = self.owners.get_mut(&session.owner) {
            owned.finished.insert(self.last_key);
        }
        self.last_key
    }

    /// Removes a session from the finished ones.
    pub(super) fn remove_finished(&mut self, key: u64) -> Option<Arc<Shared>> {
        let (_, session) = self.finished.remove(&key)?;
        if let Some(owned) = self.owners.get_mut(&session.owner) {
            owned.finished.remove(&key);
        }
        Some(session)
    }

    /// Returns the number of owners.
    pub(super) fn owners(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn bytes_of(&self, owner: &str) -> usize {
        self.owners.get(owner).map_or(0, Owned::bytes)
    }

    pub(super) fn running_of(&self, owner: &str) -> usize {
        self.owners.get(owner).map_or(0, |owned| owned.sessions - owned.finished.len())
    }

    /// Returns the owner whose sessions have the most bytes.
    pub(super) fn largest_owner(&self) -> Option<String> {
        let largest = self.owners.iter().max_by_key(|(_, owned)| owned.bytes());
        largest.map(|(owner, _)| owner.clone())
    }

    /// Returns the key of the owner's session that ended first.
    pub(super) fn oldest_of(&self, owner: &str) -> Option<u64> {
        self.owners.get(owner)?.finished.first().copied()
    }

    /// Returns the key of the session that ended first, of the owner who has the most finished ones.
    pub(super) fn oldest_of_most_finished(&self) -> Option<u64> {
        let most = self.owners.values().filter_map(|owned| {
            let oldest = owned.finished.first()?;
            Some((owned.finished.len(), Reverse(*oldest)))
        });
        most.max().map(|(_, Reverse(key))| key)
    }
}
