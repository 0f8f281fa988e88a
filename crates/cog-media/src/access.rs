use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{Fetched, Fetcher, FileGuard, MediaError, Store, Stored, Tool};

/// What a run may open. By default nothing.
#[derive(Clone, Default)]
pub struct Access {
    /// The module's directory, the base of relative paths (SPEC 4.2.3).
    pub directory: Option<PathBuf>,
    /// Whether a run may also open the files in the directory of its module, which is then the base of relative paths
    /// ([`Access::for_module`]).
    pub opens_module_files: bool,
    /// Fetches URLs; none if URLs may not be fetched.
    pub fetcher: Option<Arc<Fetcher>>,
    /// Whether an unchanged image may be sent as a URL, which the provider fetches itself.
    pub by_url: bool,
    /// Overrides whether metadata is removed; none to follow the manifest.
    pub strip_metadata: Option<bool>,
    /// Opens files under its roots.
    pub files: FileGuard,
    /// Opens uploads; none without a server that stores them.
    pub uploads: Option<Arc<dyn Uploads>>,
    /// Reads documents, audio and video; without it they are refused.
    pub tool: Option<Arc<Tool>>,
    /// The content of URLs and uploads that was stored before, by URL or id. It is used in place of opening them again,
    /// since they may have expired.
    pub stored: Arc<HashMap<String, Fetched>>,
    /// The owner whose uploads may be opened, if uploads have owners.
    pub owner: Option<String>,
}

/// Files that were uploaded before a run (docs/spec/media.md).
pub trait Uploads: Send + Sync {
    /// Opens an upload for its owner, with the type that the client suggested. Called on a thread that may block.
    ///
    /// # Errors
    /// [`MediaError::Upload`] if this owner has no such upload, or it has expired.
    fn open(&self, id: &str, owner: Option<&str>) -> Result<Fetched, MediaError>;
}

impl Access {
    /// Returns the access of a run of a module in this directory; none for a module that is not in one.
    #[must_use]
    pub fn for_module(self, directory: Option<&Path>) -> Self {
        let directory = directory.and_then(|directory| directory.canonicalize().ok());
        let files = directory.iter().cloned().fold(self.files, FileGuard::with_root);
        Self { directory, files, opens_module_files: false, ..self }
    }

    /// Fetches a URL.
    pub(crate) async fn fetch(&self, url: &str, store: Store) -> Result<Fetched, MediaError> {
        if let Some(stored) = self.stored.get(url) {
            store.expect(stored.stored.len())?;
            return Ok(stored.clone());
        }
        let fetcher = self.fetcher.as_ref().ok_or(MediaError::SourceUnavailable { what: "URLs" })?;
        fetcher.fetch(url, store).await
    }

    /// Opens a file.
    pub(crate) fn file(&self, path: &Path, store: Store) -> Result<Stored, MediaError> {
        match &self.directory {
            Some(directory) => self.files.open(&directory.join(path), store),
            None => self.files.open(path, store),
        }
    }

    /// Opens an upload.
    pub(crate) fn upload(&self, id: &str) -> Result<Fetched, MediaError> {
        if let Some(stored) = self.stored.get(id) {
            return Ok(stored.clone());
        }
        let uploads = self.uploads.as_ref().ok_or(MediaError::SourceUnavailable { what: "uploads" })?;
        uploads.open(id, self.owner.as_deref())
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("directory", &self.directory)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
