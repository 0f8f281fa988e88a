use std::{
    collections::{HashMap, VecDeque},
    io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    time::SystemTime,
};

use cog_json::ToJson as _;
use cog_module::files;
use serde::Deserialize as _;

use super::{ContextLimits, Entry, EntryId, MAX_BYTES, MAX_ENTRIES, MAX_ENTRY_BYTES, Stored};
use crate::private_files::{BoundedDirectory, StoredFile};

/// Stored context in files, one for each entry.
#[derive(Debug)]
pub(super) struct Directory {
    files: BoundedDirectory,
    /// Whether expired entries of earlier programs were removed.
    swept: Once,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        let files = BoundedDirectory {
            path,
            max_files: MAX_ENTRIES,
            max_bytes: MAX_BYTES as u64,
            max_file_bytes: MAX_ENTRY_BYTES as u64,
        };
        Self { files, swept: Once::new() }
    }

    pub(super) fn write(
        &self,
        entry: &Entry,
        limits: Option<ContextLimits>,
        now: SystemTime,
    ) -> io::Result<()> {
        self.swept.call_once(|| remove_expired(self.files.files(), now));
        let text = entry.to_json();
        if let Some(limits) = limits {
            self.check(&entry.id, text.len(), limits, now)?;
        }
        self.files.write(&entry.id.file_stem(), &text)
    }

    /// Checks whether the owner of an id may store this many bytes. At a limit, its expired entries are removed first.
    fn check(&self, id: &EntryId, bytes: usize, limits: ContextLimits, now: SystemTime) -> io::Result<()> {
        limits.check(stored(&self.files_of(id)), bytes).or_else(|_| {
            remove_expired(self.files_of(id), now);
            limits.check(stored(&self.files_of(id)), bytes)
        })
    }

    /// Returns the files of the owner of an id, without that of the id.
    fn files_of(&self, id: &EntryId) -> Vec<StoredFile> {
        let own = id.file_stem();
        let mut files = self.files.files();
        files.retain(|file| file.stem() != own && id.has_owner_of(file.stem()));
        files
    }

    /// Returns an entry; none if its file is of another id, which only an edited file can be.
    pub(super) fn read(&self, id: &EntryId) -> Option<Entry> {
        let text = self.files.read(&id.file_stem())?;
        parse(&text).filter(|entry| entry.id == *id)
    }

    pub(super) fn remove(&self, id: &EntryId) {
        self.files.remove(&id.file_stem());
    }
}

/// Removes the files of expired entries.
fn remove_expired(files: Vec<StoredFile>, now: SystemTime) {
    for file in files {
        let text = files::read_text(&file.path, MAX_ENTRY_BYTES as u64).ok();
        if text.and_then(|text| parse(&text)).is_none_or(|entry| !entry.is_fresh(None, now)) {
            let _ = std::fs::remove_file(file.path);
        }
    }
}

fn stored(files: &[StoredFile]) -> Stored {
    let bytes = |file: &StoredFile| usize::try_from(file.bytes).unwrap_or(usize::MAX);
    files.iter().fold(Stored::default(), |stored, file| stored.add(bytes(file)))
}

fn parse(text: &str) -> Option<Entry> {
    let value = cog_json::Value::parse(text).ok()?;
    Entry::deserialize(value.node()).ok()
}

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
