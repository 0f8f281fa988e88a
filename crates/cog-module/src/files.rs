//! All access to files: limited reads here, atomic writes in `write`.

#![expect(clippy::disallowed_methods, reason = "all file access of the crate is in this module")]

mod write;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;

pub(crate) use self::write::{Sibling, make_directory_of, remove};
pub use self::write::{
    check_writable, copy_directory, create, create_directory, replace_directory, write_atomic,
    write_directory,
};

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

#[cfg(test)]
mod tests;
