use std::{path::PathBuf, sync::Arc};

use crate::{Fetched, Fetcher, FileGuard, MediaError, Store, Stored, Tool};

/// What a run may open. Nothing, unless it is given.
#[derive(Clone, Default)]
pub struct Access {
    /// The module's directory, to which paths that are not absolute belong (SPEC 4.2.3).
    pub directory: Option<PathBuf>,
    /// Addresses, through this one fetch.
    pub fetcher: Option<Arc<Fetcher>>,
    /// Whether an image that needs no change may go to the vendor by its address, where the vendor fetches it again.
    pub by_address: bool,
    /// Whether metadata are stripped, whatever a manifest says; none where manifests say it.
    pub strip_metadata: Option<bool>,
    /// Files under these roots.
    pub files: FileGuard,
    /// Uploads, where there is a server that takes them.
    pub uploads: Option<Arc<dyn Uploads>>,
    /// What reads documents, sound and video; without it they are refused.
    pub tool: Option<Arc<Tool>>,
    /// Whose uploads may be opened, where they have owners.
    pub owner: Option<String>,
}

/// Bytes that were uploaded before a run (docs/spec/media.md).
pub trait Uploads: Send + Sync {
    /// Opens an upload for who owns it. Called where waiting for a disk is no harm.
    ///
    /// # Errors
    /// [`MediaError::Upload`] where there is none for this owner, or it was not used in time.
    fn open(&self, id: &str, owner: Option<&str>) -> Result<Stored, MediaError>;
}

impl Access {
    /// Fetches an address.
    pub(crate) async fn fetch(&self, url: &str, store: Store) -> Result<Fetched, MediaError> {
        let fetcher = self.fetcher.as_ref().ok_or(MediaError::NotOpened { what: "URLs" })?;
        fetcher.fetch(url, store).await
    }

    /// Opens a file.
    pub(crate) fn file(&self, path: &std::path::Path, store: Store) -> Result<Stored, MediaError> {
        match &self.directory {
            Some(directory) => self.files.open(&directory.join(path), store),
            None => self.files.open(path, store),
        }
    }

    /// Opens an upload.
    pub(crate) fn upload(&self, id: &str) -> Result<Stored, MediaError> {
        let uploads = self.uploads.as_ref().ok_or(MediaError::NotOpened { what: "uploads" })?;
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
