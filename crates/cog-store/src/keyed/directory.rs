use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};

use super::{
    Key, Limits, Lookup, OwnerLimits, StoreError, StoreSize,
    eviction::{Group, Item},
    is_name,
};
use crate::{
    Durability,
    private::{self, ABANDONED, ListedFile},
    remove_abandoned, sync_directory_of, write_durably,
};

/// The extension of values.
const VALUE: &str = "json";

/// The extension of empty files, whose values were claimed.
const CLAIMED: &str = "used";

/// The directory with a directory for each owner, for [`Layout::DirectoryPerOwner`].
const CLIENTS: &str = "clients";

/// Where the owner of a value appears in its path. The owner itself is a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `NAME.json`, and `NAME-OWNER.json` for a value with an owner.
    Flat,
    /// `NAME.json`, and `clients/OWNER/NAME.json` for a value with an owner.
    DirectoryPerOwner,
}

/// Values in files. A value that was claimed is an empty file `NAME.used`.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    layout: Layout,
    durability: Durability,
}

impl Directory {
    pub(super) fn new(path: PathBuf, layout: Layout, durability: Durability) -> Self {
        Self { path, layout, durability }
    }

    pub(super) fn insert(
        &self,
        key: &Key,
        value: &[u8],
        owner_limits: Option<OwnerLimits>,
        limits: &Limits,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        let path = self.path_of(key, VALUE);
        if let Some(owner_limits) = owner_limits {
            let others = self.owned_by(key.owner.as_deref())?.into_iter().filter(|file| file.path != path);
            owner_limits.check(others.map(|file| file.bytes), value.len() as u64)?;
        }
        let directory = self.of_owner(key.owner.as_deref());
        self.create(&directory)?;
        let written = write_durably(&path, value, self.durability);
        // Also after an error, which a full disk may have caused.
        let before = now.checked_sub(ABANDONED).unwrap_or(now);
        remove_abandoned(&directory, Some(before), is_ours_in_bytes);
        // The directory of an owner stays when it is empty: another program may be about to write to it.
        if let Ok(group) = self.group(key.owner.is_some()) {
            for path in group.surplus(limits) {
                let _ = fs::remove_file(path);
            }
        }
        Ok(written?)
    }

    pub(super) fn get(&self, key: &Key, limit: u64) -> io::Result<Lookup> {
        match private::read(&self.path_of(key, VALUE), limit) {
            Err(error) if is_missing(&error) => {
                let is_claimed = self.path_of(key, CLAIMED).exists();
                Ok(if is_claimed { Lookup::Claimed } else { Lookup::Missing })
            }
            read => read.map(Lookup::Value),
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.path_of(key, VALUE).exists()
    }

    /// Of several processes that rename a file, one succeeds.
    pub(super) fn claim(&self, key: &Key) -> bool {
        let claimed = self.path_of(key, CLAIMED);
        if fs::rename(self.path_of(key, VALUE), &claimed).is_err() {
            return false;
        }
        // The value goes, but the name stays as long as other entries do.
        let _ = fs::OpenOptions::new().write(true).truncate(true).open(&claimed);
        if self.durability == Durability::PowerCut {
            // Otherwise a power cut could undo the rename, and a second caller would get the value.
            let _ = sync_directory_of(&claimed);
        }
        true
    }

    pub(super) fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.path_of(key, VALUE));
    }

    pub(super) fn sweep(&self, owner: Option<&str>, limit: u64, is_current: impl Fn(&[u8]) -> bool) {
        let files = match owner {
            Some(_) => self.owned_by(owner),
            None => self.all_files(),
        };
        for file in files.unwrap_or_default() {
            let is_value = file.path.extension().is_some_and(|extension| extension == VALUE);
            if is_value && !private::read(&file.path, limit).is_ok_and(|value| is_current(&value)) {
                let _ = fs::remove_file(file.path);
            }
        }
    }

    pub(super) fn remove_oldest(&self, owner: Option<&str>) -> bool {
        let oldest = self.group(owner.is_some()).ok().and_then(Group::into_oldest);
        oldest.is_some_and(|path| fs::remove_file(path).is_ok())
    }

    pub(super) fn size(&self) -> io::Result<StoreSize> {
        let files = self.all_files()?;
        Ok(StoreSize {
            entries: files.len(),
            bytes: files.iter().map(|file| file.bytes).sum(),
            oldest: files.iter().map(|file| file.modified).min(),
        })
    }

    pub(super) fn clear(&self) -> io::Result<usize> {
        let files = self.all_files()?;
        for file in &files {
            match fs::remove_file(&file.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        remove_abandoned(&self.path, None, is_ours_in_bytes);
        Ok(files.len())
    }

    /// Returns the directory with the values of an owner.
    pub(super) fn of_owner(&self, owner: Option<&str>) -> PathBuf {
        match owner.filter(|_| self.layout == Layout::DirectoryPerOwner) {
            // The first half of the hash.
            Some(owner) => self.path.join(CLIENTS).join(hex(owner, 16)),
            None => self.path.clone(),
        }
    }

    fn create(&self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> = directory.ancestors().take_while(|directory| !directory.exists()).collect();
        private::create_directory(directory)?;
        if self.durability == Durability::PowerCut {
            missing.into_iter().try_for_each(sync_directory_of)?;
        }
        Ok(())
    }

    fn path_of(&self, key: &Key, extension: &str) -> PathBuf {
        let owner = key.owner.as_deref();
        let name = match owner.filter(|_| self.layout == Layout::Flat) {
            Some(owner) => format!("{}-{}.{extension}", key.name, hex(owner, 32)),
            None => format!("{}.{extension}", key.name),
        };
        self.of_owner(owner).join(name)
    }

    fn group(&self, have_owner: bool) -> io::Result<Group<PathBuf>> {
        let files = self.files(have_owner)?;
        let items = files.into_iter().map(|file| Item {
            owner: self.owner_in(&file.path).map(str::to_owned),
            bytes: file.bytes,
            handle: file.path,
        });
        Ok(Group::new(items, have_owner))
    }

    /// Returns the files of one owner.
    fn owned_by(&self, owner: Option<&str>) -> io::Result<Vec<ListedFile>> {
        let mut files = private::list(&self.of_owner(owner), is_ours)?;
        if self.layout == Layout::Flat {
            let owner = owner.map(|owner| hex(owner, 32));
            files.retain(|file| self.owner_in(&file.path) == owner.as_deref());
        }
        Ok(files)
    }

    fn all_files(&self) -> io::Result<Vec<ListedFile>> {
        let mut files = self.files(false)?;
        files.extend(self.files(true)?);
        Ok(files)
    }

    /// Returns the files of the values that have an owner or have none, the oldest first.
    fn files(&self, have_owner: bool) -> io::Result<Vec<ListedFile>> {
        if !have_owner || self.layout == Layout::Flat {
            let mut files = private::list(&self.path, is_ours)?;
            files.retain(|file| self.owner_in(&file.path).is_some() == have_owner);
            return Ok(files);
        }
        let owners = match fs::read_dir(self.path.join(CLIENTS)) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            owners => owners?,
        };
        let mut files = Vec::new();
        for owner in owners.flatten() {
            files.extend(private::list(&owner.path(), is_ours).unwrap_or_default());
        }
        files.sort_by(|one, other| {
            (one.modified, one.path.file_name()).cmp(&(other.modified, other.path.file_name()))
        });
        Ok(files)
    }

    /// Returns what stands for the owner in the path of a value.
    fn owner_in<'a>(&self, path: &'a Path) -> Option<&'a str> {
        match self.layout {
            Layout::Flat => path.file_stem()?.to_str()?.split_once('-').map(|(_, owner)| owner),
            Layout::DirectoryPerOwner => {
                let directory = path.parent().filter(|directory| *directory != self.path)?;
                directory.file_name()?.to_str()
            }
        }
    }
}

/// Whether there is no file, also because its directory is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a store gives this name to a file.
fn is_ours(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let (name, owner) = stem.split_once('-').map_or((stem, None), |(name, owner)| (name, Some(owner)));
    matches!(extension, VALUE | CLAIMED) && is_name(name) && owner.is_none_or(is_name)
}

fn is_ours_in_bytes(name: &[u8]) -> bool {
    str::from_utf8(name).is_ok_and(is_ours)
}

/// Returns the first bytes of the SHA-256 of a string, in hexadecimal.
fn hex(text: &str, bytes: usize) -> String {
    Sha256::digest(text).iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
