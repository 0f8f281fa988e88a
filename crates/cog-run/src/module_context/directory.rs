use std::{io, path::PathBuf, sync::Once, time::SystemTime};

use cog_json::ToJson as _;
use cog_module::files;
use serde::Deserialize as _;

use super::{
    entry::{Entry, EntryId, MAX_BYTES, MAX_ENTRIES, MAX_ENTRY_BYTES},
    limits::{ContextLimits, Stored},
};
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
