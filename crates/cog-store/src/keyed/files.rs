//! The files of a store: in a directory, or the same in memory. Paths are relative to the store.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::is_file_name;
use crate::{
    Durability,
    private::{self, ABANDONED},
    remove_abandoned, sync_directory_of, write_durably,
};

/// Where values are stored.
#[derive(Debug)]
pub(super) enum Files {
    Memory(Mutex<Memory>),
    Directory(PathBuf, Durability),
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    by_path: HashMap<PathBuf, Content>,
    /// The number of the next content: a clock may stand still between two.
    next: u64,
}

#[derive(Debug)]
struct Content {
    number: u64,
    modified: SystemTime,
    bytes: Vec<u8>,
}

/// A file of a store.
#[derive(Debug)]
pub(super) struct StoredFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
}

impl Files {
    pub(super) fn in_memory() -> Self {
        Self::Memory(Mutex::default())
    }

    pub(super) fn in_directory(path: PathBuf, durability: Durability) -> Self {
        Self::Directory(path, durability)
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::Directory(root, _) => Some(root),
        }
    }

    /// Writes a file and its directory.
    pub(super) fn write(&self, path: &Path, value: &[u8], now: SystemTime) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                let mut memory = lock(memory);
                let content = Content { number: memory.next, modified: now, bytes: value.to_vec() };
                memory.next += 1;
                memory.by_path.insert(path.to_owned(), content);
                Ok(())
            }
            Self::Directory(root, durability) => {
                let path = root.join(path);
                let directory = path.parent().unwrap_or(root);
                create(directory, *durability)?;
                let written = write_durably(&path, value, *durability);
                remove_abandoned(directory, Some(now.checked_sub(ABANDONED).unwrap_or(now)), is_ours);
                written
            }
        }
    }

    /// Reads a file of at most `limit` bytes.
    pub(super) fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Memory(memory) => {
                let bytes = lock(memory).by_path.get(path).map(|content| content.bytes.clone());
                bytes.ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            Self::Directory(root, _) => private::read(&root.join(path), limit),
        }
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        match self {
            Self::Memory(memory) => lock(memory).by_path.contains_key(path),
            Self::Directory(root, _) => root.join(path).exists(),
        }
    }

    /// Renames a file and removes its content. Of several callers, also in several processes, one succeeds.
    pub(super) fn rename_and_empty(&self, path: &Path, to: &Path) -> bool {
        match self {
            Self::Memory(memory) => {
                let mut memory = lock(memory);
                let Some(content) = memory.by_path.remove(path) else { return false };
                memory.by_path.insert(to.to_owned(), Content { bytes: Vec::new(), ..content });
                true
            }
            Self::Directory(root, durability) => {
                let to = root.join(to);
                if fs::rename(root.join(path), &to).is_err() {
                    return false;
                }
                let _ = fs::OpenOptions::new().write(true).truncate(true).open(&to);
                if *durability == Durability::PowerCut {
                    // Otherwise a power cut could undo the rename, and a second caller would succeed.
                    let _ = sync_directory_of(&to);
                }
                true
            }
        }
    }

    /// Removes a file, if it exists.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Memory(memory) => drop(lock(memory).by_path.remove(path)),
            Self::Directory(root, _) => match fs::remove_file(root.join(path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        Ok(())
    }

    /// Returns the values in a directory, the oldest first. A directory that does not exist is empty.
    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<StoredFile>> {
        match self {
            Self::Memory(memory) => {
                let memory = lock(memory);
                let files = memory.by_path.iter().filter(|(path, _)| path.parent() == Some(directory));
                let mut files: Vec<_> = files.collect();
                files.sort_unstable_by_key(|(_, content)| content.number);
                let files = files.into_iter().map(|(path, content)| StoredFile {
                    path: path.clone(),
                    bytes: content.bytes.len() as u64,
                    modified: content.modified,
                });
                Ok(files.collect())
            }
            Self::Directory(root, _) => {
                let files = private::list(&root.join(directory), is_file_name)?.into_iter();
                let files = files.map(|file| StoredFile {
                    path: directory.join(file.path.file_name().unwrap_or_default()),
                    bytes: file.bytes,
                    modified: file.modified,
                });
                Ok(files.collect())
            }
        }
    }

    /// Returns the values in the directories of a directory, the oldest first. In memory there are none.
    pub(super) fn list_below(&self, directory: &Path) -> io::Result<Vec<StoredFile>> {
        let Some(root) = self.directory() else { return Ok(Vec::new()) };
        let inner = match fs::read_dir(root.join(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            inner => inner?,
        };
        let mut files = Vec::new();
        for inner in inner.flatten() {
            files.extend(self.list(&directory.join(inner.file_name())).unwrap_or_default());
        }
        // Files that were written within one tick of the clock of the file system have the same time.
        files.sort_by(|one, other| {
            (one.modified, one.path.file_name()).cmp(&(other.modified, other.path.file_name()))
        });
        Ok(files)
    }

    /// Removes what killed programs have left in the directory of the store.
    pub(super) fn remove_abandoned(&self) {
        if let Some(root) = self.directory() {
            remove_abandoned(root, None, is_ours);
        }
    }
}

/// Locks the files, which are consistent between any two statements.
fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a directory and those above it. Their names are as durable as the files.
fn create(directory: &Path, durability: Durability) -> io::Result<()> {
    let missing: Vec<_> = directory.ancestors().take_while(|directory| !directory.exists()).collect();
    private::create_directory(directory)?;
    if durability == Durability::PowerCut {
        missing.into_iter().try_for_each(sync_directory_of)?;
    }
    Ok(())
}

fn is_ours(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok_and(is_file_name)
}
