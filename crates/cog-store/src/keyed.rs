//! A store of values by key, in memory or in a directory.

mod directory;
mod eviction;
mod memory;

use std::{io, path::PathBuf, time::SystemTime};

use thiserror::Error;

pub use self::directory::Layout;
use self::{directory::Directory, memory::Memory};
use crate::Durability;

/// A store of values by key.
///
/// A value that is inserted replaces the one of its key. Beyond the limits, the owner who has the most loses the oldest value.
/// Values without an owner are the operator's own: they and the values of all owners have the limits separately, so no owner
/// removes what is the operator's.
#[derive(Debug)]
pub struct KeyedStore {
    backend: Backend,
    limits: Limits,
}

#[derive(Debug)]
enum Backend {
    Memory(Memory),
    Directory(Directory),
}

/// What identifies a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    owner: Option<String>,
    name: String,
}

/// The size of a store. Claimed values count until they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of values.
    pub entries: usize,
    /// The maximum bytes of all values.
    pub bytes: u64,
    /// The maximum bytes of one value.
    pub entry_bytes: u64,
}

/// What one owner may store. An owner at a limit stores nothing more until values are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerLimits {
    /// The maximum number of values.
    pub entries: usize,
    /// The maximum bytes of all values.
    pub bytes: u64,
}

/// What a store has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The value.
    Value(Vec<u8>),
    /// A caller has claimed it.
    Claimed,
    /// No value.
    Missing,
}

/// The size of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSize {
    /// The number of values.
    pub entries: usize,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest one was stored; none if there is none.
    pub oldest: Option<SystemTime>,
}

/// Why a value was not stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It is larger than a value may be.
    #[error("{bytes} bytes; at most {max} are stored")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The maximum.
        max: u64,
    },
    /// Its owner has the maximum number of values.
    #[error("this client has stored {max} values, the maximum")]
    OwnerEntries {
        /// The maximum.
        max: usize,
    },
    /// The values of its owner would be too large.
    #[error("this client has stored {stored} bytes, and {bytes} more exceed the maximum of {max}")]
    OwnerBytes {
        /// The bytes of the owner's other values.
        stored: u64,
        /// The size of the value.
        bytes: u64,
        /// The maximum.
        max: u64,
    },
    /// The name of its key is not one that the store gives to files.
    #[error("not a name of a stored value")]
    Name,
    /// It cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Key {
    /// Returns the key of a value. A name is at least 32 hexadecimal digits in lower case, such as a hash or a random number, after
    /// an optional word and `_`. There is no value under another name, so a name can come from outside.
    pub fn new(owner: Option<&str>, name: impl Into<String>) -> Self {
        Self { owner: owner.map(str::to_owned), name: name.into() }
    }

    fn is_valid(&self) -> bool {
        is_name(&self.name)
    }
}

/// Whether a store gives this name to a value, so that it names no other file.
fn is_name(name: &str) -> bool {
    let (word, digits) = name.split_once('_').unwrap_or(("", name));
    digits.len() >= 32
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

impl KeyedStore {
    /// Creates a store that ends with this process.
    pub fn in_memory(limits: Limits) -> Self {
        Self { backend: Backend::Memory(Memory::default()), limits }
    }

    /// Creates a store in a directory, which is created with the first value. Only this user may read it. Other files in it are not
    /// touched.
    pub fn in_directory(
        path: impl Into<PathBuf>,
        layout: Layout,
        durability: Durability,
        limits: Limits,
    ) -> Self {
        Self { backend: Backend::Directory(Directory::new(path.into(), layout, durability)), limits }
    }

    /// Stores a value. `now` decides which incomplete files belong to programs that were killed.
    ///
    /// # Errors
    /// The value is too large, its owner has reached a limit, or it cannot be written.
    pub fn insert(
        &self,
        key: &Key,
        value: &[u8],
        owner_limits: Option<OwnerLimits>,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        let bytes = value.len() as u64;
        if bytes > self.limits.entry_bytes {
            return Err(StoreError::TooLarge { bytes, max: self.limits.entry_bytes });
        }
        if !key.is_valid() {
            return Err(StoreError::Name);
        }
        match &self.backend {
            Backend::Memory(memory) => memory.insert(key, value, owner_limits, &self.limits, now),
            Backend::Directory(directory) => directory.insert(key, value, owner_limits, &self.limits, now),
        }
    }

    /// Returns what the store has for a key.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than a value may be (`FileTooLarge`).
    pub fn get(&self, key: &Key) -> io::Result<Lookup> {
        match &self.backend {
            _ if !key.is_valid() => Ok(Lookup::Missing),
            Backend::Memory(memory) => Ok(memory.get(key)),
            Backend::Directory(directory) => directory.get(key, self.limits.entry_bytes),
        }
    }

    /// Returns whether there is a value for a key. A claimed one is gone.
    pub fn contains(&self, key: &Key) -> bool {
        match &self.backend {
            _ if !key.is_valid() => false,
            Backend::Memory(memory) => memory.contains(key),
            Backend::Directory(directory) => directory.contains(key),
        }
    }

    /// Claims a value, which is removed; the store remembers the key as claimed. Returns whether there was a value: of all callers, in
    /// all processes that use the directory, one gets `true`.
    pub fn claim(&self, key: &Key) -> bool {
        match &self.backend {
            _ if !key.is_valid() => false,
            Backend::Memory(memory) => memory.claim(key),
            Backend::Directory(directory) => directory.claim(key),
        }
    }

    /// Removes a value, if there is one.
    pub fn remove(&self, key: &Key) {
        match &self.backend {
            _ if !key.is_valid() => {}
            Backend::Memory(memory) => memory.remove(key),
            Backend::Directory(directory) => directory.remove(key),
        }
    }

    /// Removes the values of one owner, or of all, that are not current any more.
    pub fn sweep(&self, owner: Option<&str>, is_current: impl Fn(&[u8]) -> bool) {
        match &self.backend {
            Backend::Memory(memory) => memory.sweep(owner, is_current),
            Backend::Directory(directory) => directory.sweep(owner, self.limits.entry_bytes, is_current),
        }
    }

    /// Removes one value to make room for something of this owner: the oldest one of the owner who has the most; without an owner,
    /// the oldest of the operator's own. Returns whether there was one.
    pub fn remove_oldest(&self, owner: Option<&str>) -> bool {
        match &self.backend {
            Backend::Memory(memory) => memory.remove_oldest(owner),
            Backend::Directory(directory) => directory.remove_oldest(owner),
        }
    }

    /// Returns the size of what is stored.
    ///
    /// # Errors
    /// The directory cannot be read. One that does not exist is empty.
    pub fn size(&self) -> io::Result<StoreSize> {
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.size()),
            Backend::Directory(directory) => directory.size(),
        }
    }

    /// Removes every value. Returns how many there were.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn clear(&self) -> io::Result<usize> {
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.clear()),
            Backend::Directory(directory) => directory.clear(),
        }
    }

    /// Returns the directory with the values of an owner, in which a caller keeps further files of them; none for a store in memory.
    pub fn directory_of(&self, owner: Option<&str>) -> Option<PathBuf> {
        match &self.backend {
            Backend::Memory(_) => None,
            Backend::Directory(directory) => Some(directory.of_owner(owner)),
        }
    }
}

impl OwnerLimits {
    /// Checks whether an owner may store another value. `others` are the sizes of its other values.
    fn check(&self, others: impl Iterator<Item = u64>, bytes: u64) -> Result<(), StoreError> {
        let (mut entries, mut stored) = (0, 0_u64);
        for size in others {
            entries += 1;
            stored = stored.saturating_add(size);
        }
        if entries >= self.entries {
            return Err(StoreError::OwnerEntries { max: self.entries });
        }
        if stored.saturating_add(bytes) > self.bytes {
            return Err(StoreError::OwnerBytes { stored, bytes, max: self.bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
