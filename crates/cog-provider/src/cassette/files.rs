//! The files of a cassette.

use std::{
    fs::{self, File, OpenOptions},
    io::{Error, ErrorKind, Read, Result},
    path::{Path, PathBuf},
};

/// The largest file that is read.
const MAX_SIZE: u64 = 64 << 20;

/// MediaSink the directory where it is missing.
pub(super) fn make_directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
}

/// The numbers of the recordings in a directory, in order.
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

/// `NNNN.json`: request and head of the reply.
pub(super) fn head(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.json"))
}

/// `NNNN.ndjson`: the body of the reply.
pub(super) fn pieces(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.ndjson"))
}

/// A new file; one that exists already is never written over.
pub(super) fn create(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The text of a file of a bounded size.
pub(super) fn read(path: &Path) -> Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(path)?;
    let length = file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_SIZE {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("longer than {MAX_SIZE} bytes")));
    }
    Ok(text)
}
