//! Files that an input names.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::{MediaError, Store, Stored};

/// Opens files under its roots and no others.
#[derive(Debug, Clone, Default)]
pub struct FileGuard {
    roots: Vec<PathBuf>,
}

impl FileGuard {
    /// Files in these folders, and these files.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { roots: roots.into_iter().filter_map(|root| root.canonicalize().ok()).collect() }
    }

    /// Reads a file into a store. Links are resolved first.
    ///
    /// # Errors
    /// [`MediaError::Outside`] (E4007), [`MediaError::Unreadable`] (E1006), and as [`Store::push`].
    pub fn open(&self, path: &Path, mut store: Store) -> Result<Stored, MediaError> {
        let mut file = self.regular(path)?;
        store.expect(file.metadata()?.len())?;
        let mut block = vec![0; 64 * 1024];
        loop {
            let read = file.read(&mut block).map_err(|_| unreadable(path, "it cannot be read"))?;
            match block.get(..read) {
                Some(read) if !read.is_empty() => store.push(read)?,
                _ => return Ok(store.finish()),
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place where files of inputs are opened")]
    fn regular(&self, path: &Path) -> Result<File, MediaError> {
        let real = path.canonicalize().map_err(|_| unreadable(path, "there is no such file"))?;
        if !self.roots.iter().any(|root| real.starts_with(root)) {
            return Err(MediaError::Outside { path: path.display().to_string() });
        }
        if !real.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(unreadable(path, "it is no regular file"));
        }
        File::open(&real).map_err(|_| unreadable(path, "it cannot be opened"))
    }
}

fn unreadable(path: &Path, what: &'static str) -> MediaError {
    MediaError::Unreadable { path: path.display().to_string(), what }
}
