//! Lists a directory from an untrusted source.

use std::{fs, path::Path};

use super::{FileError, missing};

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its path from the directory, with `/` between its parts.
    pub(crate) path: String,
    /// Its size in bytes; none for a link or a device.
    pub(crate) size: Option<u64>,
}

/// Returns every file, link and device below a directory, sorted; none if there are more than `max`, directories included. Links are not
/// followed.
///
/// # Errors
/// If a directory cannot be read.
pub(crate) fn list(directory: &Path, max: usize) -> Result<Option<Vec<Listed>>, FileError> {
    let (mut found, mut seen) = (Vec::new(), 0);
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
                found.push(Listed { path, size });
            }
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(found))
}
