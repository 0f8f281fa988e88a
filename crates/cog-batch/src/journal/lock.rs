//! The lock of a journal: one program at a time.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    ops::Deref,
    path::Path,
};

use super::JournalError;

/// A file that is locked until it is dropped.
///
/// A process that is being started holds a copy of each open file for a moment, so closing does not unlock it.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Takes a file that is locked.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opens a journal and locks it. A file that does not exist is created.
pub(super) fn open(path: &Path) -> Result<LockedFile, JournalError> {
    loop {
        let file = open_file(path).map_err(|source| JournalError::write(path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(JournalError::write(path, source)),
        }
        let file = LockedFile(file);
        // Another batch can end, and remove the file, between the opening and the lock.
        if is_at(&file, path).map_err(|source| JournalError::read(path, source))? {
            return Ok(file);
        }
    }
}

/// Opens a file for reading and writing. A pipe or a device would block.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true) // a file that is open cannot be removed
}
