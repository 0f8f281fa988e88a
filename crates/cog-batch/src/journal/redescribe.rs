//! Giving a journal the description of the batch that continues it (`--allow-changes`).

use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
};

use super::{
    Description, JournalError, JournalPaths, header,
    lock::{LockedFile, sync_directory_of},
};

/// Writes the journal with another description beside its path, then renames it, so that it is always complete. Returns the
/// journal, locked, and the position of its first record.
pub(super) fn redescribe(
    journal: LockedFile,
    records: u64,
    paths: &JournalPaths,
    description: &Description,
) -> Result<(LockedFile, u64), JournalError> {
    let failed = |error| JournalError::write(&paths.journal, error);
    let header = header::encode(description).map_err(failed)?;
    let write = || -> io::Result<LockedFile> {
        let parent = paths.journal.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut copy = tempfile::NamedTempFile::new_in(parent.unwrap_or(std::path::Path::new(".")))?;
        copy.as_file().try_lock()?;
        copy.as_file().set_permissions(journal.metadata()?.permissions())?;
        copy.write_all(&header)?;
        let mut from: &File = &journal;
        from.seek(SeekFrom::Start(records))?;
        io::copy(&mut from, copy.as_file_mut())?;
        copy.as_file().sync_all()?;
        // Where an open file cannot be replaced, the lock has to go first.
        let held = cfg!(unix).then_some(journal);
        let file = LockedFile::new(copy.persist(&paths.journal)?);
        drop(held);
        sync_directory_of(&paths.journal)?;
        Ok(file)
    };
    let file = write().map_err(failed)?;
    Ok((file, header.len() as u64))
}
