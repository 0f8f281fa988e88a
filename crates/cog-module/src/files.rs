//! All access to files: limited reads here, atomic writes in `write`.

#![expect(clippy::disallowed_methods, reason = "all file access of the crate is in this module")]

use std::{
    fs,
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use cog_store::{Access, Destination, Durability, destination, replace};
use thiserror::Error;

/// The maximum size of a manifest, prompt or schema: 1 MB.
pub const MAX_PART: u64 = 1024 * 1024;

/// The maximum size of an input or expected file of a golden test: 8 MB.
pub const MAX_CASE: u64 = 8 * 1024 * 1024;

/// The maximum size of a directory that is copied: 64 MB.
const MAX_DIRECTORY: u64 = 64 * 1024 * 1024;

/// The maximum number of directory entries that are read.
const MAX_ENTRIES: usize = 10_000;

/// Why a file could not be read or written. The message never contains the content of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist.
    #[error("file not found")]
    Missing,
    /// The target directory does not exist.
    #[error("directory {} not found", directory.display())]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// It is a directory, a pipe or a device.
    #[error("not a regular file")]
    NotAFile,
    /// It is a link to a file outside its directory.
    #[error("the link points outside the module's directory")]
    Outside,
    /// It is over the limit and was not read.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It is empty or contains only white space.
    #[error("the file is empty")]
    Empty,
    /// It is UTF-16, as some editors and shells write it.
    #[error("the file is UTF-16, not UTF-8")]
    Utf16,
    /// It is not UTF-8 text.
    #[error("not UTF-8 text: invalid byte 0x{byte:02X}{} at offset {offset}", in_latin_1(.byte))]
    NotUtf8 {
        /// The offset of the first invalid byte, from 0.
        offset: usize,
        /// The byte.
        byte: u8,
    },
    /// It contains a NUL byte, so it is not text.
    #[error("not a text file: NUL byte at offset {offset}")]
    Nul {
        /// The first NUL, from 0.
        offset: usize,
    },
    /// The operating system reported an error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl FileError {
    /// Returns what to do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Missing => "Check the file name and the directory.",
            Self::NoDirectory { .. } => "Create the directory, or use one that exists.",
            Self::NotAFile => "Give the path of a regular file.",
            Self::Outside => "Copy the file into the directory.",
            Self::TooLarge { .. } => "Split it, or remove what is not needed.",
            Self::Empty => "Add content to it.",
            Self::Utf16 | Self::NotUtf8 { .. } | Self::Nul { .. } => "Save it as UTF-8 text.",
            Self::Io(_) => "Check that it exists and that you have permission to read and write.",
        }
    }
}

/// Returns what a byte is in Latin-1, the encoding that most of these files have.
fn in_latin_1(byte: &u8) -> String {
    let character = char::from(*byte);
    if character.is_control() { String::new() } else { format!(" (`{character}` in Latin-1)") }
}

/// Reads a text file of at most `limit` bytes; a byte order mark is removed.
///
/// The size is checked first, and reading stops at the limit.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    // Before the file is opened: opening a pipe would wait for a writer.
    let about = fs::metadata(path).map_err(missing)?;
    if !about.is_file() {
        return Err(FileError::NotAFile);
    }
    if about.len() > limit {
        return Err(FileError::TooLarge { limit });
    }
    // The file may have grown since, or be one whose size the system does not know.
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(missing)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { limit });
    }
    text_of(bytes)
}

/// Reads a text file below a directory. Links must stay inside, so that a module from an untrusted source cannot make
/// this program read and send other files.
pub(crate) fn read_text_within(directory: &Path, relative: &str, limit: u64) -> Result<String, FileError> {
    let path = directory.join(relative);
    let directory = fs::canonicalize(directory).map_err(missing)?;
    // A target that does not exist is reported when it is read.
    if fs::canonicalize(&path).is_ok_and(|target| !target.starts_with(directory)) {
        return Err(FileError::Outside);
    }
    read_text(&path, limit)
}

/// Returns bytes as text: UTF-8, without NUL, not empty, without a byte order mark.
pub fn text_of(bytes: Vec<u8>) -> Result<String, FileError> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(FileError::Utf16);
    }
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(FileError::Nul { offset });
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        FileError::NotUtf8 { offset, byte: error.as_bytes().get(offset).copied().unwrap_or_default() }
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if text.trim().is_empty() { Err(FileError::Empty) } else { Ok(text) }
}

/// Returns bytes as text, as [`text_of`], if there are at most `limit`.
pub(crate) fn text_within(bytes: &[u8], limit: u64) -> Result<String, FileError> {
    if bytes.len() as u64 > limit { Err(FileError::TooLarge { limit }) } else { text_of(bytes.to_vec()) }
}

/// Returns what is at the path of a missing file: a directory, or a broken link.
pub(crate) fn what_is_at(path: &Path) -> Option<&'static str> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => Some("a directory"),
        Ok(_) => None,
        Err(_) => fs::symlink_metadata(path).is_ok().then_some("a broken link"),
    }
}

/// Checks that a directory can be listed.
pub(crate) fn check_directory(directory: &Path) -> Result<(), FileError> {
    fs::read_dir(directory).map(drop).map_err(missing)
}

/// Returns the names of the files in a directory, sorted; empty if there is no such directory.
pub fn file_names(directory: &Path) -> Vec<String> {
    entry_names(directory, fs::FileType::is_dir, false)
}

/// Returns the names of the directories in a directory, sorted; empty if there is no such directory.
pub fn directory_names(directory: &Path) -> Vec<String> {
    entry_names(directory, fs::FileType::is_dir, true)
}

/// Returns every file below a directory with its relative path; links and devices are skipped.
///
/// # Errors
/// If one cannot be read, or all together are over 64 MB.
pub fn read_directory(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, FileError> {
    let mut files = Vec::new();
    let mut left = MAX_DIRECTORY;
    let mut open = vec![directory.to_owned()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            // The type is the entry's own, so that a link is neither: a copy must not follow it out of the directory.
            } else if kind.is_file() {
                let mut bytes = Vec::new();
                fs::File::open(entry.path())?.take(left + 1).read_to_end(&mut bytes)?;
                left = left
                    .checked_sub(bytes.len() as u64)
                    .ok_or(FileError::TooLarge { limit: MAX_DIRECTORY })?;
                let path = entry
                    .path()
                    .strip_prefix(directory)
                    .unwrap_or(&inner)
                    .to_string_lossy()
                    .replace('\\', "/");
                files.push((path, bytes));
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn entry_names(directory: &Path, is_directory: fn(&fs::FileType) -> bool, directories: bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter(|entry| {
            fs::metadata(entry.path()).is_ok_and(|about| is_directory(&about.file_type()) == directories)
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

fn missing(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            FileError::Missing
        }
        _ => FileError::Io(error),
    }
}

// Lists a directory from an untrusted source.

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Its path from the directory, with `/` between its parts.
    pub(crate) path: String,
    /// Its size in bytes; none for a link or a device.
    pub(crate) size: Option<u64>,
}

/// Returns every file, link and device below a directory, sorted; none if there are more than `max`, directories
/// included. Links are not followed.
///
/// # Errors
/// If a directory cannot be read.
pub(crate) fn list(directory: &Path, max: usize) -> Result<Option<Vec<FileEntry>>, FileError> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open = vec![(directory.to_owned(), String::new())];
    while let Some((inner, prefix)) = open.pop() {
        for entry in fs::read_dir(&inner).map_err(missing)? {
            let entry = entry?;
            seen += 1;
            if seen > max {
                return Ok(None);
            }
            let kind = entry.file_type()?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else {
                let size = if kind.is_file() { Some(entry.metadata()?.len()) } else { None };
                found.push(FileEntry { path, size });
            }
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(found))
}

// Atomic writes of files and directories.

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

#[cfg(test)]
mod tests;
