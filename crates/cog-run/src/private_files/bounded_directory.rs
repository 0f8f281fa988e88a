//! A directory of private files with a bounded size: when it is full, the oldest files are removed.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use cog_module::files::{self, FileError};

use super::{ABANDONED, create_directory, open_options};
use crate::{clock, session};

/// The extension of complete files.
const EXTENSION: &str = "json";

/// The extension of files that are being written.
const NEW: &str = "new";

/// A directory of private files with a bounded size. Other files in it are not touched.
#[derive(Debug, Clone)]
pub(crate) struct BoundedDirectory {
    pub(crate) path: PathBuf,
    /// The maximum number of files.
    pub(crate) max_files: usize,
    /// The maximum bytes of all files.
    pub(crate) max_bytes: u64,
    /// The maximum bytes of one file.
    pub(crate) max_file_bytes: u64,
}

/// A file of the directory.
pub(crate) struct StoredFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

impl StoredFile {
    /// Returns its name without the extension.
    pub(crate) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

impl BoundedDirectory {
    /// Returns the text of a file; none if there is none. `stem` begins with a hash in hexadecimal.
    pub(crate) fn read(&self, stem: &str) -> Option<String> {
        match self.read_file(stem) {
            Ok(text) => Some(text),
            Err(FileError::Missing) => None,
            Err(error) => {
                tracing::warn!(%error, "a stored file cannot be read");
                None
            }
        }
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// There is no file, or it cannot be read.
    pub(crate) fn read_file(&self, stem: &str) -> Result<String, FileError> {
        files::read_text(&self.path_of(stem), self.max_file_bytes)
    }

    /// Writes a file. It appears complete or not at all.
    ///
    /// # Errors
    /// The text is too long, or the file cannot be written.
    pub(crate) fn write(&self, stem: &str, text: &str) -> io::Result<()> {
        if text.len() as u64 > self.max_file_bytes {
            let message = format!("{} bytes; at most {} are stored", text.len(), self.max_file_bytes);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        create_directory(&self.path)?;
        let new =
            self.path.join(format!("{stem}-{}.{NEW}", session::random_id("").map_err(io::Error::other)?));
        let written = write_new(&new, text).and_then(|()| fs::rename(&new, self.path_of(stem)));
        if written.is_err() {
            let _ = fs::remove_file(new);
        }
        self.prune();
        written
    }

    /// Removes a file, if there is one.
    pub(crate) fn remove(&self, stem: &str) {
        let _ = fs::remove_file(self.path_of(stem));
    }

    /// Checks that the directory can be read, if it exists.
    ///
    /// # Errors
    /// It is a file, or this user may not read it.
    pub(crate) fn check(&self) -> io::Result<()> {
        match fs::read_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the complete files, in no order.
    pub(crate) fn files(&self) -> Vec<StoredFile> {
        self.files_with(EXTENSION)
    }

    /// Removes every file. Returns how many there were.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(crate) fn clear(&self) -> io::Result<usize> {
        let files = self.files();
        for file in files.iter().chain(&self.files_with(NEW)) {
            match fs::remove_file(&file.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(files.len())
    }

    /// Removes the oldest files beyond the limits, and files that were never complete. Files that cannot be removed stay.
    fn prune(&self) {
        let now = clock::now();
        let is_abandoned =
            |file: &StoredFile| now.duration_since(file.modified).is_ok_and(|age| age > ABANDONED);
        for file in self.files_with(NEW).into_iter().filter(is_abandoned) {
            let _ = fs::remove_file(file.path);
        }
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.modified));
        let mut bytes = 0_u64;
        for (index, file) in files.iter().enumerate() {
            bytes = bytes.saturating_add(file.bytes);
            if index >= self.max_files || bytes > self.max_bytes {
                let _ = fs::remove_file(&file.path);
            }
        }
    }

    fn files_with(&self, extension: &str) -> Vec<StoredFile> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| is_ours(&entry.path(), extension));
        let stored = ours.filter_map(|entry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(StoredFile { path: entry.path(), bytes: about.len(), modified: about.modified().ok()? })
        });
        stored.collect()
    }

    fn path_of(&self, stem: &str) -> PathBuf {
        self.path.join(format!("{stem}.{EXTENSION}"))
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open_options().create_new(true).write(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Whether a file has a name that this program gives.
fn is_ours(path: &Path, extension: &str) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let hash = stem.get(..64).unwrap_or_default();
    path.extension().is_some_and(|own| own == extension)
        && hash.len() == 64
        && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stem(number: u8) -> String {
        format!("{number:064x}")
    }

    fn directory(path: &Path) -> BoundedDirectory {
        BoundedDirectory { path: path.join("store"), max_files: 3, max_bytes: 100, max_file_bytes: 60 }
    }

    /// Sets the time at which a file was written, in seconds.
    fn set_age(store: &BoundedDirectory, stem: &str, seconds: u64) {
        let file = fs::OpenOptions::new().write(true).open(store.path_of(stem)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn oldest_files_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let store = directory(temporary.path());
        for number in 1..=4 {
            store.write(&stem(number), "text").unwrap();
            if number < 4 {
                set_age(&store, &stem(number), u64::from(number));
            }
        }
        assert_eq!(store.read(&stem(1)), None);
        assert_eq!(store.read(&stem(2)).as_deref(), Some("text"));
        store.write(&stem(5), &"x".repeat(60)).unwrap();
        store.write(&stem(6), &"y".repeat(50)).unwrap();
        let files = store.files();
        assert!(files.iter().map(|file| file.bytes).sum::<u64>() <= 100);
        assert!(store.write(&stem(7), &"z".repeat(61)).is_err());
    }

    #[test]
    fn file_that_a_killed_program_left_is_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let store = directory(temporary.path());
        store.write(&stem(1), "text").unwrap();
        let [left, open] = ["a", "b"].map(|name| store.path.join(format!("{}-{name}.{NEW}", stem(2))));
        for path in [&left, &open] {
            write_new(path, "te").unwrap();
        }
        let file = fs::OpenOptions::new().write(true).open(&left).unwrap();
        file.set_modified(clock::now() - ABANDONED - Duration::from_secs(60)).unwrap();
        store.write(&stem(3), "text").unwrap();
        assert!(!left.exists());
        assert!(open.exists(), "another program may be writing it");
    }

    #[test]
    fn other_files_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let store = directory(temporary.path());
        store.write(&stem(1), "text").unwrap();
        let other = store.path.join("notes.json");
        fs::copy(store.path_of(&stem(1)), &other).unwrap();
        store.clear().unwrap();
        assert!(other.exists());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let temporary = tempfile::tempdir().unwrap();
        let store = directory(temporary.path());
        store.write(&stem(1), "text").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.path), mode(&store.path_of(&stem(1)))), (0o700, 0o600));
    }
}
