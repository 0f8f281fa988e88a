//! Delivers generated media, and stores media by hash.

use std::{
    fs::{self, DirBuilder},
    io::{self, ErrorKind, Read, Write as _},
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use cog_spec::ErrorBody;
use tempfile::NamedTempFile;

use crate::{Media, MediaError, Store, Stored, checksum::hex};

/// Where generated media is delivered (SPEC 4.3).
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// In the answer, as base64.
    #[default]
    Inline,
    /// As files in this directory, which is created if missing.
    Directory(PathBuf),
    /// Through a publisher that serves them.
    Store(Arc<dyn UrlStore>),
}

/// Stores generated media for the owner of the run (SPEC 4.3.2).
pub trait UrlStore: Send + Sync {
    /// Stores a media file for its owner and returns its URL. Called on a thread that may block, inside a Tokio
    /// runtime.
    ///
    /// # Errors
    /// If there is no room.
    fn store(&self, owner: Option<&str>, media: &Media) -> Result<StoredUrl, ErrorBody>;
}

/// Where a generated media file can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUrl {
    /// Its URL.
    pub url: String,
    /// When it expires (RFC 3339).
    pub expires_at: String,
}

/// Where a media file was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryPlace {
    /// In the answer.
    Inline,
    /// In this file.
    File(PathBuf),
    /// At a URL.
    Url(StoredUrl),
}

impl Delivery {
    /// Returns the `type` of media that are delivered this way.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Inline => "base64",
            Self::Directory(_) => "file",
            Self::Store(_) => "url",
        }
    }

    /// Delivers a media file. A file is named after the module and the hash of the content; existing files are never
    /// overwritten. Blocks on the disk.
    ///
    /// # Errors
    /// If the disk or the publisher refuses it.
    pub fn deliver(
        &self,
        module: &str,
        owner: Option<&str>,
        media: &Media,
    ) -> Result<DeliveryPlace, ErrorBody> {
        match self {
            Self::Inline => Ok(DeliveryPlace::Inline),
            Self::Directory(directory) => write(directory, module, media)
                .map(DeliveryPlace::File)
                .map_err(|error| ErrorBody::from(&error)),
            Self::Store(store) => store.store(owner, media).map(DeliveryPlace::Url),
        }
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(directory) => f.debug_tuple("Directory").field(directory).finish(),
            other => f.write_str(other.kind()),
        }
    }
}

fn write(directory: &Path, module: &str, media: &Media) -> Result<PathBuf, MediaError> {
    DirBuilder::new().recursive(true).create(directory)?;
    let hash = media.bytes().sha256().map(|hash| hex(hash)).unwrap_or_default();
    let stem = format!("{module}-{}", hash.get(..12).unwrap_or("media"));
    store(&absolute(directory)?, &stem, extension(media.media_type()), media.bytes().reader())
}

/// Stores content in a file that did not exist. The file appears only when it is complete.
fn store(
    directory: &Path,
    stem: &str,
    extension: &str,
    mut content: impl Read,
) -> Result<PathBuf, MediaError> {
    let mut file = temporary_file(directory, ".cog-", 0o666)?;
    std::io::copy(&mut content, &mut file)?;
    let mut count = 1_u32;
    loop {
        let name = match count {
            1 => format!("{stem}.{extension}"),
            count => format!("{stem}-{count}.{extension}"),
        };
        let path = directory.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists && count < u32::MAX => {
                file = failed.file;
                count += 1;
            }
            Err(failed) => return Err(failed.error.into()),
        }
    }
}

/// Creates a temporary file. Files with the mode `0o666` have the permissions of a normal file.
fn temporary_file(directory: &Path, prefix: &str, mode: u32) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(directory)
}

/// Returns the file name extension of a media type: `jpg` of `image/jpeg`.
pub fn extension(media_type: &str) -> &str {
    match media_type {
        "image/jpeg" => "jpg",
        "audio/mpeg" => "mp3",
        other => other.rsplit_once('/').map_or(other, |(_, kind)| kind),
    }
}

// A directory of media files that are stored once: each has the hash of its content as its name.

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

/// Returns whether a name is 64 hexadecimal digits and an extension.
fn is_hash_name(name: &str) -> bool {
    let Some((hash, extension)) = name.split_once('.') else { return false };
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // Without a dot or a slash, the name stays in the directory.
    let is_plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte));
    is_hash && is_plain && !extension.is_empty()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the files of the tests")]
mod tests {
    use super::*;
    use crate::{MediaDeclaration, MediaRules, Store, check::check_now, decode_base64};

    const PIXEL: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

    fn pixel() -> Media {
        let stored = decode_base64(PIXEL, Store::with_limit(100)).unwrap();
        check_now(stored, &MediaDeclaration::default(), &MediaRules::default()).unwrap()
    }

    #[test]
    fn creates_a_file_and_overwrites_none() {
        let directory = tempfile::tempdir().unwrap();
        let delivery = Delivery::Directory(directory.path().join("deep/out"));
        let paths: Vec<PathBuf> = (0..3)
            .map(|_| match delivery.deliver("draws", None, &pixel()).unwrap() {
                DeliveryPlace::File(path) => path,
                other => panic!("{other:?}"),
            })
            .collect();
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        let stem = names[0].strip_suffix(".gif").unwrap();
        assert!(stem.starts_with("draws-"), "{stem}");
        assert_eq!(names[1..], [format!("{stem}-2.gif"), format!("{stem}-3.gif")]);
        assert!(paths.iter().all(|path| path.is_absolute() && std::fs::read(path).unwrap().len() == 43));
    }

    #[test]
    fn failed_write_leaves_no_file() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(ErrorKind::StorageFull.into())
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let content = b"the first bytes".chain(Failing);
        assert!(store(directory.path(), "draws-1", "gif", content).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn delivered_file_has_the_permissions_of_a_normal_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let delivered = store(directory.path(), "draws-1", "gif", &b"bytes"[..]).unwrap();
        let normal = directory.path().join("normal");
        std::fs::write(&normal, "").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&delivered), mode(&normal));
    }

    #[test]
    fn invalid_directory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Delivery::Directory(file.join("out")).deliver("draws", None, &pixel()).is_err());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the files of the tests")]
mod directory_tests {
    use super::*;
    use crate::{MediaDeclaration, MediaRules, check::check_now, decode_base64};

    fn pixel() -> Media {
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let stored = decode_base64(pixel, Store::with_limit(100)).unwrap();
        check_now(stored, &MediaDeclaration::default(), &MediaRules::default()).unwrap()
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
