use std::{io, path::PathBuf, sync::Once, time::SystemTime};

use cog_json::ToJson as _;
use cog_module::files;
use serde::Deserialize as _;

use super::entry::{Entry, EntryId, MAX_BYTES, MAX_ENTRIES, MAX_ENTRY_BYTES};
use crate::private_files::BoundedDirectory;

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

    pub(super) fn write(&self, entry: &Entry, now: SystemTime) -> io::Result<()> {
        self.swept.call_once(|| self.remove_expired(now));
        self.files.write(&entry.id.file_stem(), &entry.to_json())
    }

    /// Returns an entry; none if its file is of another id, which only an edited file can be.
    pub(super) fn read(&self, id: &EntryId) -> Option<Entry> {
        let text = self.files.read(&id.file_stem())?;
        parse(&text).filter(|entry| entry.id == *id)
    }

    pub(super) fn remove(&self, id: &EntryId) {
        self.files.remove(&id.file_stem());
    }

    fn remove_expired(&self, now: SystemTime) {
        for file in self.files.files() {
            let text = files::read_text(&file.path, self.files.max_file_bytes).ok();
            if text.and_then(|text| parse(&text)).is_none_or(|entry| !entry.is_fresh(None, now)) {
                let _ = std::fs::remove_file(file.path);
            }
        }
    }
}

fn parse(text: &str) -> Option<Entry> {
    let value = cog_json::Value::parse(text).ok()?;
    Entry::deserialize(value.node()).ok()
}
