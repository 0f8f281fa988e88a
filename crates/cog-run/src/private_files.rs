//! Files and directories that only this user may read: sessions and the run log contain inputs and answers.

mod bounded_directory;
mod media_files;

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
    time::Duration,
};

pub(crate) use self::{
    bounded_directory::{BoundedDirectory, StoredFile},
    media_files::{MediaFiles, StoredMedia},
};

/// The age after which an incomplete file belongs to a program that was killed.
pub(crate) const ABANDONED: Duration = Duration::from_secs(3600);

/// Returns options that create a file only this user may read.
pub fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory and its parents if they do not exist, so that only this user may read them. Directories that
/// exist are not changed.
///
/// # Errors
/// The directory cannot be created.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
