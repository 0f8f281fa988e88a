//! A directory of media files that are stored once: each has the hash of its content as its name.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use super::{extension, temporary_file};
use crate::{Media, MediaError, Store, Stored};

/// The beginning of the names of files that are not complete yet.
const INCOMPLETE: &str = ".cog-";

/// A directory in which equal media are one file, named `HASH.png` with the SHA-256 of the content.
#[derive(Debug, Clone)]
pub struct MediaDirectory {
    path: PathBuf,
    mode: u32,
}

impl MediaDirectory {
    /// Returns the directory at a path. It must exist when a file is stored.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: 0o666 }
    }

    /// Returns the directory at a path, whose files only this user may read.
    pub fn private(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), mode: 0o600 }
    }

    /// Returns the name of a media file. Reads the content if its hash is not known yet.
    ///
    /// # Errors
    /// If the content cannot be read.
    pub fn name_of(media: &Media) -> Result<String, MediaError> {
        Ok(format!("{}.{}", media.sha256()?, extension(media.media_type())))
    }

    /// Stores a media file and returns its name. The file appears when it is complete. Blocks on the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, media: &Media) -> Result<String, MediaError> {
        let name = Self::name_of(media)?;
        let mut file = temporary_file(&self.path, INCOMPLETE, self.mode)?;
        io::copy(&mut media.bytes().reader(), &mut file)?;
        file.flush()?;
        file.persist(self.path.join(&name)).map_err(|failed| failed.error)?;
        Ok(name)
    }

    /// Opens a stored file with at most this many bytes. Blocks on the disk.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    pub fn open(&self, name: &str, limit: u64) -> Result<Stored, MediaError> {
        let mut store = Store::with_limit(limit);
        store.push_all(fs::OpenOptions::new().read(true).open(self.path_of(name)?)?)?;
        Ok(store.finish())
    }

    /// Returns the length of a stored file.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn len_of(&self, name: &str) -> io::Result<u64> {
        self.path_of(name)?.metadata().map(|file| file.len())
    }

    /// Removes a stored file, if it exists.
    pub fn remove(&self, name: &str) {
        if let Ok(path) = self.path_of(name) {
            let _ = fs::remove_file(path);
        }
    }

    /// Removes every stored file that is not needed, and files that an earlier program did not complete.
    pub fn remove_except(&self, is_needed: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(INCOMPLETE) || (is_hash_name(name) && !is_needed(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns the path of a file with a name that [`MediaDirectory::store`] gives.
    fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        let path = is_hash_name(name).then(|| self.path.join(name));
        path.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a stored media file"))
    }
}

/// Whether this is 64 hexadecimal digits and an extension.
fn is_hash_name(name: &str) -> bool {
    let is_hex =
        |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_plain = |extension: &str| {
        !extension.is_empty()
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte))
    };
    name.split_once('.').is_some_and(|(hash, extension)| is_hex(hash) && is_plain(extension))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the files of the tests")]
mod tests {
    use super::*;
    use crate::{Expected, MediaRules, check::check_now, decode_base64};

    fn pixel() -> Media {
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let stored = decode_base64(pixel, Store::with_limit(100)).unwrap();
        check_now(stored, &Expected::default(), &MediaRules::default()).unwrap()
    }

    #[test]
    fn equal_media_are_one_file() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = MediaDirectory::new(temporary.path());
        let names = [(); 2].map(|()| directory.store(&pixel()).unwrap());
        assert_eq!(names[0], names[1]);
        assert_eq!(names[0], format!("{}.gif", pixel().sha256().unwrap()));
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
        let stored = directory.open(&names[0], 43).unwrap();
        assert_eq!((stored.len(), directory.len_of(&names[0]).unwrap()), (43, 43));
        assert!(directory.open(&names[0], 42).is_err());
        directory.remove(&names[0]);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }

    #[test]
    fn other_names_are_refused_and_other_files_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = MediaDirectory::new(temporary.path());
        let name = directory.store(&pixel()).unwrap();
        for other in ["notes.txt", ".cog-1"] {
            fs::write(temporary.path().join(other), "x").unwrap();
        }
        assert!(directory.open("notes.txt", 100).is_err());
        assert!(directory.open(&format!("../{name}"), 100).is_err());
        directory.remove("notes.txt");
        directory.remove_except(|kept| kept == name);
        let mut left: Vec<_> =
            fs::read_dir(temporary.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [name.as_str(), "notes.txt"]);
        directory.remove_except(|_| false);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn private_files_are_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let temporary = tempfile::tempdir().unwrap();
        let directory = MediaDirectory::private(temporary.path());
        let name = directory.store(&pixel()).unwrap();
        assert_eq!(temporary.path().join(name).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
