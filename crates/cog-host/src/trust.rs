//! The directories that the operator trusts, stored by `cog trust`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use cog_json::{ToJson as _, Value};
use cog_module::{
    TrustedDirectories, TrustedDirectory,
    files::{self, FileError},
};
use cog_store::{Durability, private, write_durably};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::settings::Settings;

/// The maximum size of the file.
const LIMIT: u64 = 4 * 1024 * 1024;

/// A directory in the file: a path, or an object if changes of its manifests end the trust.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredDirectory {
    Path(String),
    Directory { path: String, modules: BTreeMap<String, BTreeSet<String>> },
}

impl StoredDirectory {
    fn new(directory: &TrustedDirectory) -> Result<Self, TrustError> {
        let path = directory.path.to_str().ok_or_else(|| TrustError::NotText(directory.path.clone()))?;
        let path = path.to_owned();
        Ok(match &directory.granted {
            None => Self::Path(path),
            Some(modules) => Self::Directory { path, modules: modules.clone() },
        })
    }
}

impl From<StoredDirectory> for TrustedDirectory {
    fn from(stored: StoredDirectory) -> Self {
        match stored {
            StoredDirectory::Path(path) => PathBuf::from(path).into(),
            StoredDirectory::Directory { path, modules } => {
                Self { path: PathBuf::from(path), granted: Some(modules) }
            }
        }
    }
}

/// The directories that the operator trusts: a JSON list that only this user may read.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
}

/// Why trust cannot be read or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("cannot {verb} {}: {message}", .path.display())]
    File {
        /// What failed: `read`, `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        message: String,
    },
    /// The file is not a list of directories.
    #[error("{} is not a JSON list of directories", .0.display())]
    Damaged(PathBuf),
    /// Other users may change the file.
    #[error("other users of this machine can change {}", .0.display())]
    Exposed(PathBuf),
    /// What is to be trusted is not a directory.
    #[error("`{}` is not a directory", .0.display())]
    NoDirectory(PathBuf),
    /// The path is not UTF-8, so that the file cannot contain it.
    #[error("the path {} is not UTF-8", .0.display())]
    NotText(PathBuf),
}

impl TrustError {
    /// Returns what to do about the error.
    pub fn suggestion(&self) -> String {
        match self {
            Self::File { .. } => "Check that you own it, and that HOME is a directory.".to_owned(),
            Self::Damaged(path) => format!("Remove {}, and trust your directories again.", path.display()),
            Self::Exposed(path) => {
                format!("Check its content, then run `chmod 600` on {}.", path.display())
            }
            Self::NoDirectory(_) => "Give a directory with modules, or the directory of a module.".to_owned(),
            Self::NotText(_) => "Rename the directory, or use --trust.".to_owned(),
        }
    }
}

impl TrustStore {
    /// Returns the store of a user; none without a home directory.
    pub fn new(settings: &Settings) -> Option<Self> {
        Some(Self { path: settings.directories.state.as_deref()?.join("trusted.json") })
    }

    /// Returns the trusted directories, sorted.
    ///
    /// # Errors
    /// The file exists and cannot be read, or other users may change it.
    pub fn directories(&self) -> Result<Vec<TrustedDirectory>, TrustError> {
        let text = match files::read_text(&self.path, LIMIT) {
            Ok(text) => text,
            Err(FileError::Missing | FileError::Empty) => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read", &error)),
        };
        // Whoever can write the list can give tools to any module.
        if private::is_writable_by_others(&self.path) {
            return Err(TrustError::Exposed(self.path.clone()));
        }
        let list = Value::parse(&text).map_err(|_| TrustError::Damaged(self.path.clone()))?;
        let stored: Vec<StoredDirectory> =
            cog_json::from_value(&list).map_err(|_| TrustError::Damaged(self.path.clone()))?;
        Ok(stored.into_iter().map(TrustedDirectory::from).collect())
    }

    /// Trusts a directory with what its modules allow now.
    ///
    /// # Errors
    /// It is not a directory, or the file cannot be written.
    pub fn add(&self, directory: &Path) -> Result<TrustedDirectory, TrustError> {
        self.replace(TrustedDirectory::with_current(resolved(directory)?))
    }

    /// Trusts the directory of a module that the operator creates, and so edits.
    ///
    /// # Errors
    /// As [`TrustStore::add`].
    pub fn add_own(&self, directory: &Path) -> Result<TrustedDirectory, TrustError> {
        self.replace(TrustedDirectory::from(resolved(directory)?))
    }

    fn replace(&self, directory: TrustedDirectory) -> Result<TrustedDirectory, TrustError> {
        self.change(|directories| {
            directories.retain(|one| one.path != directory.path);
            directories.push(directory.clone());
        })?;
        Ok(directory)
    }

    /// Ends the trust in a directory, which may be gone. Returns whether it was trusted.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn remove(&self, directory: &Path) -> Result<bool, TrustError> {
        let resolved = directory.canonicalize().or_else(|_| std::path::absolute(directory));
        let resolved = resolved.unwrap_or_else(|_| directory.to_owned());
        let mut was_trusted = false;
        self.change(|directories| {
            let before = directories.len();
            directories.retain(|one| one.path != resolved && one.path != directory);
            was_trusted = directories.len() < before;
        })?;
        Ok(was_trusted)
    }

    /// Changes the list under a lock: two commands at the same time must not lose each other's change.
    fn change(&self, change: impl FnOnce(&mut Vec<TrustedDirectory>)) -> Result<(), TrustError> {
        // The lock is a file of its own: the list is replaced by renaming, which would leave the others with a lock on the old file.
        let lock = self.lock().map_err(|error| self.failed("write", &error))?;
        let mut directories = self.directories()?;
        change(&mut directories);
        directories.sort_by(|one, other| one.path.cmp(&other.path));
        let stored: Vec<_> = directories.iter().map(StoredDirectory::new).collect::<Result<_, _>>()?;
        let text = stored.to_json_pretty();
        // A link to the file, as in a directory of dotfiles, stays.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        write_durably(&path, format!("{text}\n").as_bytes(), Durability::PowerCut)
            .map_err(|error| self.failed("write", &error))?;
        drop(lock);
        Ok(())
    }

    /// Creates the directory of the file, and waits for the lock.
    fn lock(&self) -> io::Result<fs::File> {
        let lock = private::append(&self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn failed(&self, verb: &'static str, error: &dyn std::fmt::Display) -> TrustError {
        TrustError::File { verb, path: self.path.clone(), message: error.to_string() }
    }
}

/// Returns a directory with its links resolved.
fn resolved(directory: &Path) -> Result<PathBuf, TrustError> {
    let resolved = directory.canonicalize().ok().filter(|directory| directory.is_dir());
    resolved.ok_or_else(|| TrustError::NoDirectory(directory.to_owned()))
}

impl Settings {
    /// Returns the directories whose modules may call tools. A file that cannot be read trusts nothing; `cog trust` reports
    /// why.
    pub(crate) fn trusted_directories(&self) -> TrustedDirectories {
        if self.trust.value {
            return TrustedDirectories::All;
        }
        let stored = TrustStore::new(self).and_then(|store| store.directories().ok());
        TrustedDirectories::Only(stored.unwrap_or_default())
    }
}
