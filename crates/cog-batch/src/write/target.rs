//! The file of an output: written beside its path, synced, renamed.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile};

use super::WriteError;
use crate::journal::sync_directory_of;

/// The characters after the prefix of a temporary file.
const RANDOM: usize = 6;
/// The bytes that are written at once.
const BUFFER: usize = 256 << 10;

/// Writes a file atomically, or a pipe or device directly.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let at = |source| WriteError::File { path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let stream = OpenOptions::new().write(true).open(path).map_err(at)?;
        return fill(stream, content).map(drop).map_err(|error| error.at(path));
    }
    let path = resolve(path).map_err(at)?;
    remove_stale(&path);
    let (file, temporary) = create_beside(&path).map_err(at)?.into_parts();
    let file = fill(file, content).map_err(|error| error.at(&path))?;
    file.sync_all().map_err(at)?;
    temporary.persist(&path).map_err(|failed| at(failed.error))?;
    sync_directory_of(&path).map_err(at)
}

/// Gives a file a second name, which replaces the file there. Returns whether the file system supports it.
pub(super) fn link(from: &Path, to: &Path) -> bool {
    let link = || {
        let to = resolve(to)?;
        remove_stale(&to);
        let prefix = prefix(&to);
        let temporary = builder(&prefix).make_in(directory_of(&to), |path| std::fs::hard_link(from, path))?;
        let name = temporary.path().to_owned();
        temporary.into_temp_path().persist(&to).map_err(|failed| failed.error)?;
        let _ = std::fs::remove_file(name); // it remains if both names are of the same file already
        sync_directory_of(&to)
    };
    let is_file = std::fs::metadata(to).map_or(true, |about| about.is_file());
    is_file && link().is_ok()
}

fn fill(
    file: File,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<File, WriteError> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?)
}

/// Follows links to the file that is replaced.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => std::fs::canonicalize(path),
        Err(_) => Ok(path.to_owned()),
    }
}

/// Creates a temporary file in the directory of a file. The error does not contain its generated name.
fn create_beside(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = prefix(path);
    let created = builder(&prefix).tempfile_in(directory_of(path));
    let file = created.map_err(|error| io::Error::from(error.kind()))?;
    if let Ok(about) = std::fs::metadata(path) {
        file.as_file().set_permissions(about.permissions())?;
    }
    Ok(file)
}

/// Temporary files have the permissions of any new file.
fn builder(prefix: &OsStr) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Returns what the name of a temporary file of an output begins with.
fn prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".cog-");
    prefix
}

/// Removes the temporary files of a batch that was killed while it wrote this output. No other batch writes it: its journal is
/// locked.
fn remove_stale(path: &Path) {
    let prefix = prefix(path);
    let Ok(entries) = std::fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        if random.is_some_and(|random| random.len() == RANDOM) {
            let _ = std::fs::remove_file(entry.path()); // one that stays does no harm
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
