//! Writing: a file or a directory is there whole, or as it was.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{FileError, missing};

/// Writes a file whole: into a sibling first, which then takes its place.
///
/// A reader sees the old text or the new one, never a part. No directory is made: one that is missing is
/// rather mistyped than wanted. A link is followed; what is no regular file, such as a pipe, is written
/// to as it is.
///
/// # Errors
/// When the system refuses; the file is then as it was.
pub fn write_atomic(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    let Place::File(path) = place_of(path)? else { return Ok(fs::write(path, content)?) };
    let mut sibling = sibling_file(parent_of(&path))?;
    sibling.write_all(content.as_ref())?;
    sibling.as_file().sync_all()?;
    set_permissions_of(&path, sibling.path())?;
    sibling.persist(&path).map_err(|error| FileError::Io(error.error))?;
    Ok(())
}

/// Whether a file can be written under a name: for those who would rather know it before the work
/// begins whose result it is to hold.
///
/// # Errors
/// As [`write_atomic`].
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    match place_of(path)? {
        Place::File(path) => sibling_file(parent_of(&path)).map(drop),
        Place::Stream => Ok(()),
    }
}

/// Begins a file that grows while it is written, and can be read all the while; what it held before is gone.
///
/// # Errors
/// As [`write_atomic`].
#[expect(clippy::disallowed_methods, reason = "a stream cannot be written at once")]
pub fn create(path: &Path) -> Result<fs::File, FileError> {
    place_of(path)?;
    Ok(fs::File::create(path)?)
}

/// Where a text goes that is written under a name.
enum Place {
    /// A file, which is there or will be; links are followed.
    File(PathBuf),
    /// A pipe or a device.
    Stream,
}

fn place_of(path: &Path) -> Result<Place, FileError> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => return Err(FileError::NotAFile),
        Ok(about) if !about.is_file() => return Ok(Place::Stream),
        Ok(_) => return Ok(Place::File(fs::canonicalize(path)?)),
        Err(_) => {}
    }
    let directory = parent_of(path);
    match fs::metadata(directory) {
        Ok(about) if about.is_dir() => Ok(Place::File(path.to_owned())),
        _ => Err(FileError::NoDirectory { directory: directory.to_owned() }),
    }
}

/// A temporary file in a directory; the error does not tell its name, which nobody knows.
fn sibling_file(directory: &Path) -> Result<tempfile::NamedTempFile, FileError> {
    tempfile::Builder::new().prefix(".cog-").tempfile_in(directory).map_err(nameless)
}

/// The same for a directory.
fn sibling_directory(parent: &Path) -> Result<tempfile::TempDir, FileError> {
    tempfile::Builder::new().prefix(".cog-").tempdir_in(parent).map_err(nameless)
}

fn nameless(error: io::Error) -> FileError {
    FileError::Io(error.kind().into())
}

/// MediaSink a directory with these files: in a sibling first, which then takes its place.
///
/// # Errors
/// When a file cannot be written, or the directory is there already; nothing is left behind then.
pub fn write_directory(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<(), FileError> {
    let parent = parent_of(directory);
    fs::create_dir_all(parent)?;
    let sibling = sibling_directory(parent)?;
    for (path, bytes) in files {
        let path = sibling.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(sibling.path()))?;
        fs::write(path, bytes)?;
    }
    open_to_others(sibling.path())?;
    fs::rename(sibling.path(), directory)?;
    // The directory has moved, so there is nothing to remove under the old name.
    let _ = sibling.keep();
    Ok(())
}

/// Copies a directory with everything in it; links stay links.
///
/// # Errors
/// When something cannot be copied: a copy without it would be no copy.
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

/// MediaSink the directory that a file is to stand in, and those above it, where they are missing.
pub(crate) fn make_directory_of(path: &Path) -> Result<(), FileError> {
    Ok(fs::create_dir_all(parent_of(path))?)
}

/// Removes a file, and the directories under `root` that are empty then.
pub(crate) fn remove(path: &Path, root: &Path) -> Result<(), FileError> {
    fs::remove_file(path).map_err(missing)?;
    let above = path.ancestors().skip(1).take_while(|directory| *directory != root);
    for directory in above {
        // A directory that still holds something stays: this is the test for it.
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// A temporary directory beside another one, so that one can take the other's place.
pub(crate) struct Sibling(tempfile::TempDir);

impl Sibling {
    pub(crate) fn of(directory: &Path) -> Result<Self, FileError> {
        Ok(Self(sibling_directory(parent_of(directory))?))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts `staged` in place of `directory`, which moves to `kept`, or goes with the sibling.
    ///
    /// Where the system can exchange two names in one step, there is a whole directory under the name of
    /// `directory` at every moment.
    pub(crate) fn swap(&self, staged: &Path, directory: &Path, kept: Option<&Path>) -> Result<(), FileError> {
        let away = kept.map_or_else(|| self.path().join("replaced"), Path::to_owned);
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

/// Exchanges two names in one step; false where the system or the file system cannot.
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

/// A temporary file is readable by its owner alone; what replaces a file keeps that file's rights.
fn set_permissions_of(path: &Path, sibling: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) => fs::set_permissions(sibling, about.permissions()),
        Err(_) => readable(sibling),
    }
}

/// Gives what was made for one user alone the usual rights.
#[cfg(unix)]
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(unix)]
fn open_to_others(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn readable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}
