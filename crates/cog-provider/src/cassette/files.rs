//! Paths and files of a cassette.

use std::{
    fs::{self, File, OpenOptions},
    io::{Error, ErrorKind, Read, Result},
    path::{Path, PathBuf},
};

use crate::ProviderError;

/// The maximum size of a file that is read, in bytes.
const MAX_SIZE: u64 = 64 << 20;

/// Creates the directory if it does not exist.
pub(super) fn create_directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
}

/// Returns the numbers of the recordings in a directory, in order.
pub(super) fn numbers(directory: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if path.extension().is_some_and(|extension| extension == "json") {
            numbers.extend(stem.and_then(|stem| stem.parse::<u32>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the path of `NNNN.json`, which contains the request and the reply headers.
pub(super) fn exchange(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.json"))
}

/// Returns the path of `NNNN.ndjson`, which contains the reply body.
pub(super) fn chunks(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.ndjson"))
}

/// Creates a new file; never overwrites an existing one.
pub(super) fn create(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Reads a text file of at most `MAX_SIZE` bytes.
pub(super) fn read(path: &Path) -> Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(path)?;
    let length = file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_SIZE {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("the file has more than {MAX_SIZE} bytes")));
    }
    Ok(text)
}

/// Creates the error for a cassette that cannot be used.
pub(super) fn cassette_error(path: &Path, message: impl ToString) -> ProviderError {
    ProviderError::Cassette { path: path.to_owned(), message: message.to_string() }
}
