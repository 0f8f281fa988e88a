//! A store of values by key, in memory or in a directory.

mod files;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use self::files::{Files, StoredFile};
use crate::Durability;

/// The extension of values.
const VALUE: &str = "json";

/// The extension of empty files, whose values were claimed.
const CLAIMED: &str = "used";

/// The directory with a directory for each owner, for [`Layout::DirectoryPerOwner`].
const CLIENTS: &str = "clients";

/// A store of values by key.
///
/// A value that is inserted replaces the one of its key. Beyond the limits, the owner who has the most loses the oldest value.
/// Values without an owner are the operator's own: they and the values of all owners have the limits separately, so no owner
/// removes what is the operator's.
#[derive(Debug)]
pub struct KeyedStore {
    files: Files,
    layout: Layout,
    limits: Limits,
    /// Held while the limits of an owner are checked and its value is stored, so that several threads do not exceed them together.
    checked: Mutex<()>,
}

/// Where the owner of a value appears in its path. The owner itself is a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `NAME.json`, and `NAME-OWNER.json` for a value with an owner.
    Flat,
    /// `NAME.json`, and `clients/OWNER/NAME.json` for a value with an owner.
    DirectoryPerOwner,
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
}

impl KeyedStore {
    /// Creates a store that ends with this process.
    pub fn in_memory(limits: Limits) -> Self {
        Self::new(Files::in_memory(), Layout::Flat, limits)
    }

    /// Creates a store in a directory, which is created with the first value. Only this user may read it. Other files in it are not
    /// touched. A value that was claimed is an empty file `NAME.used`.
    pub fn in_directory(
        path: impl Into<PathBuf>,
        layout: Layout,
        durability: Durability,
        limits: Limits,
    ) -> Self {
        Self::new(Files::in_directory(path.into(), durability), layout, limits)
    }

    fn new(files: Files, layout: Layout, limits: Limits) -> Self {
        Self { files, layout, limits, checked: Mutex::default() }
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
        let path = self.path_of(key, VALUE).ok_or(StoreError::Name)?;
        let written = match owner_limits {
            None => self.files.write(&path, value, now),
            Some(owner_limits) => {
                let _checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
                let others =
                    self.owned_by(key.owner.as_deref())?.into_iter().filter(|file| file.path != path);
                owner_limits.check(others.map(|file| file.bytes), bytes)?;
                self.files.write(&path, value, now)
            }
        };
        // Also after an error, which a full disk may have caused.
        if let Ok(group) = self.group(key.owner.is_some()) {
            for path in group.surplus(&self.limits) {
                let _ = self.files.remove(&path);
            }
        }
        Ok(written?)
    }

    /// Returns what the store has for a key.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than a value may be (`FileTooLarge`).
    pub fn get(&self, key: &Key) -> io::Result<Lookup> {
        let Some(path) = self.path_of(key, VALUE) else { return Ok(Lookup::Missing) };
        match self.files.read(&path, self.limits.entry_bytes) {
            // Its directory may be a file.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let is_claimed = self.files.exists(&path.with_extension(CLAIMED));
                Ok(if is_claimed { Lookup::Claimed } else { Lookup::Missing })
            }
            read => read.map(Lookup::Value),
        }
    }

    /// Returns whether there is a value for a key. A claimed one is gone.
    pub fn contains(&self, key: &Key) -> bool {
        self.path_of(key, VALUE).is_some_and(|path| self.files.exists(&path))
    }

    /// Claims a value, which is removed; the store remembers the key as claimed. Returns whether there was a value: of all callers, in
    /// all processes that use the directory, one gets `true`.
    pub fn claim(&self, key: &Key) -> bool {
        let path = self.path_of(key, VALUE);
        path.is_some_and(|path| self.files.rename_and_empty(&path, &path.with_extension(CLAIMED)))
    }

    /// Removes a value, if there is one.
    pub fn remove(&self, key: &Key) {
        if let Some(path) = self.path_of(key, VALUE) {
            let _ = self.files.remove(&path);
        }
    }

    /// Removes the values of one owner, or of all, that are not current any more.
    pub fn sweep(&self, owner: Option<&str>, is_current: impl Fn(&[u8]) -> bool) {
        let files = match owner {
            Some(_) => self.owned_by(owner),
            None => self.all_files(),
        };
        for StoredFile { path, .. } in files.unwrap_or_default() {
            let is_value = path.extension().is_some_and(|extension| extension == VALUE);
            if is_value
                && !self.files.read(&path, self.limits.entry_bytes).is_ok_and(|value| is_current(&value))
            {
                let _ = self.files.remove(&path);
            }
        }
    }

    /// Returns the size of what is stored.
    ///
    /// # Errors
    /// The directory cannot be read. One that does not exist is empty.
    pub fn size(&self) -> io::Result<StoreSize> {
        let files = self.all_files()?;
        Ok(StoreSize {
            entries: files.len(),
            bytes: files.iter().map(|file| file.bytes).sum(),
            oldest: files.iter().map(|file| file.modified).min(),
        })
    }

    /// Removes every value. Returns how many there were.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn clear(&self) -> io::Result<usize> {
        let files = self.all_files()?;
        files.iter().try_for_each(|file| self.files.remove(&file.path))?;
        self.files.remove_abandoned();
        Ok(files.len())
    }

    /// Returns the directory with the values of an owner, in which a caller keeps further files of them; none for a store in memory.
    pub fn directory_of(&self, owner: Option<&str>) -> Option<PathBuf> {
        Some(self.files.directory()?.join(self.owner_directory(owner)))
    }

    /// Returns the path of a key within the store; none for a name that the store does not give.
    fn path_of(&self, key: &Key, extension: &str) -> Option<PathBuf> {
        let owner = key.owner.as_deref();
        let stem = match owner.filter(|_| self.layout == Layout::Flat) {
            Some(owner) => format!("{}-{}", key.name, hex(owner, 32)),
            None => key.name.clone(),
        };
        is_name(&key.name).then(|| self.owner_directory(owner).join(format!("{stem}.{extension}")))
    }

    fn owner_directory(&self, owner: Option<&str>) -> PathBuf {
        match owner.filter(|_| self.layout == Layout::DirectoryPerOwner) {
            // The first half of the hash.
            Some(owner) => Path::new(CLIENTS).join(hex(owner, 16)),
            None => PathBuf::new(),
        }
    }

    /// Returns the values that have an owner or have none, for the choice of what is removed.
    fn group(&self, have_owner: bool) -> io::Result<Group<PathBuf>> {
        let items = self.files_of(have_owner)?.into_iter().map(|file| Item {
            owner: self.owner_in(&file.path).map(str::to_owned),
            bytes: file.bytes,
            handle: file.path,
        });
        Ok(Group::new(items))
    }

    /// Returns the files of one owner.
    fn owned_by(&self, owner: Option<&str>) -> io::Result<Vec<StoredFile>> {
        let mut files = self.files.list(&self.owner_directory(owner))?;
        if self.layout == Layout::Flat {
            let owner = owner.map(|owner| hex(owner, 32));
            files.retain(|file| self.owner_in(&file.path) == owner.as_deref());
        }
        Ok(files)
    }

    fn all_files(&self) -> io::Result<Vec<StoredFile>> {
        let mut files = self.files_of(false)?;
        files.extend(self.files_of(true)?);
        Ok(files)
    }

    /// Returns the files of the values that have an owner or have none, the oldest first.
    fn files_of(&self, have_owner: bool) -> io::Result<Vec<StoredFile>> {
        if have_owner && self.layout == Layout::DirectoryPerOwner {
            return self.files.list_below(Path::new(CLIENTS));
        }
        let mut files = self.files.list(Path::new(""))?;
        files.retain(|file| self.owner_in(&file.path).is_some() == have_owner);
        Ok(files)
    }

    /// Returns what stands for the owner in the path of a value.
    fn owner_in<'a>(&self, path: &'a Path) -> Option<&'a str> {
        match self.layout {
            Layout::Flat => path.file_stem()?.to_str()?.split_once('-').map(|(_, owner)| owner),
            Layout::DirectoryPerOwner => path.parent()?.file_name()?.to_str(),
        }
    }
}

/// Whether a store gives this name to a value, so that it names no other file.
fn is_name(name: &str) -> bool {
    let (word, digits) = name.split_once('_').unwrap_or(("", name));
    digits.len() >= 32
        && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether a store gives this name to a file.
fn is_file_name(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let (name, owner) = stem.split_once('-').map_or((stem, None), |(name, owner)| (name, Some(owner)));
    matches!(extension, VALUE | CLAIMED) && is_name(name) && owner.is_none_or(is_name)
}

/// Returns the first bytes of the SHA-256 of a string, in hexadecimal.
fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text).iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

impl OwnerLimits {
    /// Checks whether an owner may store another value. `others` are the sizes of its other values.
    fn check(&self, others: impl Iterator<Item = u64>, bytes: u64) -> Result<(), StoreError> {
        let mut entries = 0;
        let mut stored = 0_u64;
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

// The choice of what is removed beyond the limits.

/// A stored value, as the choice sees it.
struct Item<T> {
    /// The owner, or what stands for it in the name of a file; none for the operator's own.
    owner: Option<String>,
    bytes: u64,
    /// What removes it.
    handle: T,
}

/// Stored values of the operator, or of all owners.
struct Group<T> {
    owners: BTreeMap<Option<String>, Owned<T>>,
    entries: usize,
    bytes: u64,
}

/// The values of one owner, the oldest first, each with its position among the values of all owners.
struct Owned<T> {
    values: VecDeque<(usize, u64, T)>,
    bytes: u64,
}

impl<T> Group<T> {
    /// Creates a group of values, the oldest first.
    fn new(items: impl IntoIterator<Item = Item<T>>) -> Self {
        let mut group = Self { owners: BTreeMap::new(), entries: 0, bytes: 0 };
        for (position, Item { owner, bytes, handle }) in items.into_iter().enumerate() {
            let owned =
                group.owners.entry(owner).or_insert_with(|| Owned { values: VecDeque::new(), bytes: 0 });
            owned.values.push_back((position, bytes, handle));
            owned.bytes = owned.bytes.saturating_add(bytes);
            group.entries += 1;
            group.bytes = group.bytes.saturating_add(bytes);
        }
        group
    }

    /// Returns what exceeds the limits: of the owner who has the most, the oldest value, again and again.
    fn surplus(mut self, limits: &Limits) -> Vec<T> {
        let mut surplus = Vec::new();
        while self.entries > limits.entries
            && let Some(handle) = self.take_oldest(|owned| owned.values.len() as u64)
        {
            surplus.push(handle);
        }
        while self.bytes > limits.bytes
            && let Some(handle) = self.take_oldest(|owned| owned.bytes)
        {
            surplus.push(handle);
        }
        surplus
    }

    /// Takes the oldest value of the owner with the largest size. Of several with the same size, the one with the oldest value loses
    /// it, so that a group in which each owner has one value removes them by age.
    fn take_oldest(&mut self, size: impl Fn(&Owned<T>) -> u64) -> Option<T> {
        let with_values = self.owners.values_mut().filter(|owned| !owned.values.is_empty());
        let position =
            |owned: &Owned<T>| owned.values.front().map(|(position, ..)| std::cmp::Reverse(*position));
        let largest = with_values.max_by_key(|owned| (size(owned), position(owned)))?;
        let (_, bytes, handle) = largest.values.pop_front()?;
        largest.bytes -= bytes;
        self.entries -= 1;
        self.bytes -= bytes;
        Some(handle)
    }
}

#[cfg(test)]
mod tests;
