//! Atomic writes of files and directories.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use cog_store::{Access, Destination, Durability, destination, replace};

use super::{FileError, missing};

/// Writes a file atomically: first a temporary sibling, which then replaces it.
///
/// A reader sees the old text or the new one. No directory is created, because a missing one is probably a typo. A
/// link is followed; a pipe or device is written directly.
///
/// # Errors
/// If the file cannot be written; it is then unchanged.
pub fn write_atomic(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    let Destination::File(path) = destination_of(path)? else { return Ok(fs::write(path, content)?) };
    replace(&path, Access::Shared, Durability::PowerCut, |file| file.write_all(content.as_ref()))?;
    Ok(())
}

/// Checks that a file can be written, before the work that produces its content.
///
/// # Errors
/// As [`write_atomic`].
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    match destination_of(path)? {
        Destination::File(path) => tempfile::tempfile_in(parent_of(&path)).map(drop).map_err(without_name),
        Destination::Stream => Ok(()),
    }
}

/// Creates or truncates a file that grows while it is written and can be read meanwhile.
///
/// # Errors
/// As [`write_atomic`].
#[expect(clippy::disallowed_methods, reason = "a stream cannot be written at once")]
pub fn create(path: &Path) -> Result<fs::File, FileError> {
    destination_of(path)?;
    Ok(fs::File::create(path)?)
}

/// Returns what a path leads to. The directory of a new file must exist.
fn destination_of(path: &Path) -> Result<Destination, FileError> {
    let destination = destination(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => FileError::NotAFile,
        _ => FileError::Io(error),
    })?;
    let directory = parent_of(path);
    if !path.exists() && !directory.is_dir() {
        return Err(FileError::NoDirectory { directory: directory.to_owned() });
    }
    Ok(destination)
}

/// Creates a temporary directory in a directory.
fn sibling_directory(parent: &Path) -> Result<tempfile::TempDir, FileError> {
    tempfile::Builder::new().prefix(".cog-").tempdir_in(parent).map_err(without_name)
}

fn without_name(error: io::Error) -> FileError {
    FileError::Io(error.kind().into())
}

/// Creates a directory and those above it, unless they exist.
///
/// # Errors
/// If it cannot be created.
pub fn create_directory(directory: &Path) -> Result<(), FileError> {
    Ok(fs::create_dir_all(directory)?)
}

/// Writes a directory atomically with these files: first a temporary sibling, which then takes its name.
///
/// # Errors
/// If a file cannot be written or the directory exists; nothing is left behind.
pub fn write_directory(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<(), FileError> {
    let parent = parent_of(directory);
    fs::create_dir_all(parent)?;
    let sibling = sibling_directory(parent)?;
    write_files(sibling.path(), files)?;
    make_readable(sibling.path())?;
    fs::rename(sibling.path(), directory)?;
    // The directory has been renamed, so nothing must be removed at the old path.
    let _ = sibling.keep();
    Ok(())
}

/// Replaces a directory, with everything in it, by one with these files.
///
/// # Errors
/// If a file cannot be written, or the directory does not exist; it is then unchanged.
pub fn replace_directory(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<(), FileError> {
    let directory = directory.canonicalize().map_err(missing)?;
    let sibling = Sibling::new(&directory)?;
    let staged = sibling.path().join("staged");
    write_files(&staged, files)?;
    make_readable(&staged)?;
    sibling.swap(&staged, &directory, None)
}

/// Writes files below a directory. A script is executable.
fn write_files(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<(), FileError> {
    for (path, bytes) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(&path, bytes)?;
        if bytes.starts_with(b"#!") {
            make_readable(&path)?;
        }
    }
    Ok(())
}

/// Copies a directory with everything in it; links stay links.
///
/// # Errors
/// If an entry cannot be copied.
pub fn copy_directory(from: &Path, to: &Path) -> Result<(), FileError> {
    let mut open = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = open.pop() {
        fs::create_dir_all(&to)?;
        fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push((entry.path(), target));
            } else if kind.is_file() {
                fs::copy(entry.path(), target)?;
            } else if kind.is_symlink() {
                copy_link(&entry.path(), &target)?;
            } else {
                return Err(FileError::NotAFile);
            }
        }
    }
    Ok(())
}

/// Creates the parent directories of a file.
pub(crate) fn make_directory_of(path: &Path) -> Result<(), FileError> {
    Ok(fs::create_dir_all(parent_of(path))?)
}

/// Removes a file, and then the parent directories below `root` that are empty.
pub(crate) fn remove(path: &Path, root: &Path) -> Result<(), FileError> {
    fs::remove_file(path).map_err(missing)?;
    let above = path.ancestors().skip(1).take_while(|directory| *directory != root);
    for directory in above {
        // Removing a directory that is not empty fails.
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// A temporary directory next to another one, so that one can replace the other.
pub(crate) struct Sibling(tempfile::TempDir);

impl Sibling {
    pub(crate) fn new(directory: &Path) -> Result<Self, FileError> {
        Ok(Self(sibling_directory(parent_of(directory))?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Replaces `directory` with `staged`. The old directory moves to `backup`, or is removed with the sibling.
    ///
    /// If the system can exchange two names atomically, `directory` is complete at every moment.
    pub(crate) fn swap(
        &self,
        staged: &Path,
        directory: &Path,
        backup: Option<&Path>,
    ) -> Result<(), FileError> {
        let away = backup.map_or_else(|| self.path().join("replaced"), Path::to_owned);
        if exchange(staged, directory)? {
            return Ok(fs::rename(staged, &away)?);
        }
        fs::rename(directory, &away)?;
        if let Err(error) = fs::rename(staged, directory) {
            fs::rename(&away, directory)?;
            return Err(error.into());
        }
        Ok(())
    }
}

/// Exchanges two names atomically; returns false if the system or the file system does not support it.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map(drop)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Allows everyone to read and to enter a directory, or to run a script.
#[cfg(unix)]
fn make_readable(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_readable(_: &Path) -> io::Result<()> {
    Ok(())
}
