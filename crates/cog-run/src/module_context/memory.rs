use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::entry::{Entry, EntryId, MAX_BYTES, MAX_ENTRIES};

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
    /// Stores an entry of this size, and removes the oldest ones beyond the limits.
    pub(super) fn write(&self, entry: Entry, bytes: usize) {
        let mut entries = self.lock();
        entries.remove(&entry.id);
        entries.order.push_back(entry.id.clone());
        entries.bytes += bytes;
        entries.by_id.insert(entry.id.clone(), (entry, bytes));
        while entries.by_id.len() > MAX_ENTRIES || entries.bytes > MAX_BYTES {
            let Some(oldest) = entries.order.front().cloned() else { return };
            entries.remove(&oldest);
        }
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
    fn remove(&mut self, id: &EntryId) {
        if let Some((_, bytes)) = self.by_id.remove(id) {
            self.bytes -= bytes;
            self.order.retain(|other| other != id);
        }
    }
}
