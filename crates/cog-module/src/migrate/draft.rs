use super::{FileChange, MigrateError};
use crate::{
    Origin,
    files::{self, FileError},
    source::Source,
};

/// The future files of a module, over its current files.
pub(super) struct Draft<'a> {
    origin: &'a Origin,
    changes: Vec<FileChange>,
    notes: Vec<String>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(origin: &'a Origin) -> Self {
        Self { origin, changes: Vec::new(), notes: Vec::new() }
    }

    /// Returns the future content of a file; none if it will not exist.
    pub(super) fn read(&self, path: &str) -> Result<Option<Source>, MigrateError> {
        let full = self.origin.path_of(path);
        if let Some(change) = self.changes.iter().find(|change| change.path == path) {
            return Ok(change.after.clone().map(|text| Source::new(full, text)));
        }
        match self.origin.read(path, files::MAX_CASE) {
            Ok(source) => Ok(Some(source)),
            Err(FileError::Missing | FileError::Empty) => Ok(None),
            Err(error) => Err(MigrateError::File { path: full, error }),
        }
    }

    /// Returns the future content of a required file.
    pub(super) fn require(&self, path: &str) -> Result<Source, MigrateError> {
        let missing = || MigrateError::File { path: self.origin.path_of(path), error: FileError::Missing };
        self.read(path)?.ok_or_else(missing)
    }

    pub(super) fn put(&mut self, path: &str, text: String) -> Result<(), MigrateError> {
        self.set(path, Some(text))
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<(), MigrateError> {
        self.set(path, None)
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the changes sorted by path, and the notes.
    pub(super) fn finish(mut self) -> (Vec<FileChange>, Vec<String>) {
        self.changes.retain(|change| change.before != change.after);
        self.changes.sort_by(|a, b| a.path.cmp(&b.path));
        (self.changes, self.notes)
    }

    fn set(&mut self, path: &str, after: Option<String>) -> Result<(), MigrateError> {
        if let Some(change) = self.changes.iter_mut().find(|change| change.path == path) {
            change.after = after;
            return Ok(());
        }
        let before = self.read(path)?.map(|source| source.text);
        self.changes.push(FileChange { path: path.to_owned(), before, after });
        Ok(())
    }
}
