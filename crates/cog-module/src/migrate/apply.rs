use std::path::{Path, PathBuf};

use super::{MigrateError, Migration};
use crate::{
    Origin,
    files::{self, FileError},
    load,
};

impl Migration {
    /// Writes the plan. With `backup`, the old directory is stored next to the module, and its path is returned.
    ///
    /// The change is atomic: the new directory is created next to the old one, loaded as a check, and then replaces
    /// it.
    ///
    /// # Errors
    /// If a file cannot be written or the result does not load; the module is then unchanged.
    pub fn apply(&self, backup: bool) -> Result<Option<PathBuf>, MigrateError> {
        if self.is_empty() {
            return Ok(None);
        }
        let directory =
            self.directory.canonicalize().map_err(|error| self.at(&self.directory, error.into()))?;
        let fresh = files::Sibling::new(&directory).map_err(|error| self.at(&directory, error))?;
        let staged = fresh.path().join(directory.file_name().unwrap_or_default());
        files::copy_directory(&directory, &staged).map_err(|error| self.at(&directory, error))?;
        self.write_into(&staged)?;
        load(&Origin::Directory(staged.clone())).map_err(MigrateError::Result)?;
        let backup = backup.then(|| self.backup_name(&directory));
        fresh.swap(&staged, &directory, backup.as_deref()).map_err(|error| self.at(&directory, error))?;
        Ok(backup)
    }

    fn write_into(&self, staged: &Path) -> Result<(), MigrateError> {
        for change in &self.changes {
            let path = staged.join(&change.path);
            let written = match &change.after {
                Some(text) => files::make_directory_of(&path).and_then(|()| files::write_atomic(&path, text)),
                None => files::remove(&path, staged),
            };
            written.map_err(|error| self.at(&path, error))?;
        }
        Ok(())
    }

    /// Returns `NAME.v1.bak`, with a number if that exists. Because of the dot it is not a module name.
    fn backup_name(&self, directory: &Path) -> PathBuf {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let base = format!("{name}.{}.bak", self.from);
        let numbered = (2..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let free = names.find(|name| !directory.with_file_name(name).exists());
        directory.with_file_name(free.unwrap_or(base))
    }

    fn at(&self, path: &Path, error: FileError) -> MigrateError {
        MigrateError::File { path: path.to_owned(), error }
    }
}
