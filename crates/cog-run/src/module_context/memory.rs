use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::{
    entry::{Entry, EntryId, MAX_BYTES, MAX_ENTRIES},
    limits::{ContextLimits, Stored},
};

/// Stored context in memory.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<EntryId, (Entry, usize)>,
    /// The ids, the oldest first.
    order: VecDeque<EntryId>,
    bytes: usize,
}

impl Memory {
    /// Stores an entry of this size, and removes the oldest ones beyond the limits of all owners.
    ///
    /// # Errors
    /// The owner has reached its limit.
    pub(super) fn write(
        &self,
        entry: Entry,
        bytes: usize,
        limits: Option<ContextLimits>,
        now: SystemTime,
    ) -> io::Result<()> {
        let mut entries = self.lock();
        if let Some(limits) = limits {
            limits.check(entries.stored_by(&entry.id, now), bytes)?;
        }
        entries.insert(entry, bytes);
        Ok(())
    }

    pub(super) fn read(&self, id: &EntryId) -> Option<Entry> {
        self.lock().by_id.get(id).map(|(entry, _)| entry.clone())
    }

    pub(super) fn remove(&self, id: &EntryId) {
        self.lock().remove(id);
    }

    /// Locks the entries, which are consistent between any two statements.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Returns what the owner of an id has stored, without the entry of the id and without expired ones.
    fn stored_by(&self, id: &EntryId, now: SystemTime) -> Stored {
        let others = self.by_id.values().filter(|(entry, _)| entry.id.owner == id.owner && entry.id != *id);
        let fresh = others.filter(|(entry, _)| entry.is_fresh(None, now));
        fresh.fold(Stored::default(), |stored, (_, bytes)| stored.add(*bytes))
    }

    fn insert(&mut self, entry: Entry, bytes: usize) {
        self.remove(&entry.id);
        self.order.push_back(entry.id.clone());
        self.bytes += bytes;
        self.by_id.insert(entry.id.clone(), (entry, bytes));
        while self.by_id.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.front().cloned() else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, id: &EntryId) {
        if let Some((_, bytes)) = self.by_id.remove(id) {
            self.bytes -= bytes;
            self.order.retain(|other| other != id);
        }
    }
}
