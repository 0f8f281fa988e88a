//! Delivers generated media, and stores media by hash.

mod directory;

use std::{
    fs::DirBuilder,
    io::{ErrorKind, Read},
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use cog_spec::ErrorBody;
use tempfile::NamedTempFile;

use crate::{Media, MediaError, checksum::hex};

pub use self::directory::MediaDirectory;

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
    Publisher(Arc<dyn Publish>),
}

/// Stores generated media for the owner of the run (SPEC 4.3.2).
pub trait Publish: Send + Sync {
    /// Stores a media file for its owner and returns its URL. Called on a thread that may block, inside a Tokio
    /// runtime.
    ///
    /// # Errors
    /// If there is no room.
    fn publish(&self, owner: Option<&str>, media: &Media) -> Result<Published, ErrorBody>;
}

/// Where a generated media file can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its URL.
    pub url: String,
    /// When it expires (RFC 3339).
    pub expires_at: String,
}

/// Where a media file was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// In the answer.
    Inline,
    /// In this file.
    File(PathBuf),
    /// At a URL.
    Url(Published),
}

impl Delivery {
    /// Returns the `type` of media that are delivered this way.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Inline => "base64",
            Self::Directory(_) => "file",
            Self::Publisher(_) => "url",
        }
    }

    /// Delivers a media file. A file is named after the module and the hash of the content; existing files are never
    /// overwritten. Blocks on the disk.
    ///
    /// # Errors
    /// If the disk or the publisher refuses it.
    pub fn deliver(&self, module: &str, owner: Option<&str>, media: &Media) -> Result<Delivered, ErrorBody> {
        match self {
            Self::Inline => Ok(Delivered::Inline),
            Self::Directory(directory) => {
                write(directory, module, media).map(Delivered::File).map_err(|error| ErrorBody::from(&error))
            }
            Self::Publisher(publisher) => publisher.publish(owner, media).map(Delivered::Url),
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
                (file, count) = (failed.file, count + 1);
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the files of the tests")]
mod tests {
    use super::*;
    use crate::{Expected, MediaRules, Store, check::check_now, decode_base64};

    const PIXEL: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

    fn pixel() -> Media {
        let stored = decode_base64(PIXEL, Store::with_limit(100)).unwrap();
        check_now(stored, &Expected::default(), &MediaRules::default()).unwrap()
    }

    #[test]
    fn creates_a_file_and_overwrites_none() {
        let directory = tempfile::tempdir().unwrap();
        let delivery = Delivery::Directory(directory.path().join("deep/out"));
        let paths: Vec<PathBuf> = (0..3)
            .map(|_| match delivery.deliver("draws", None, &pixel()).unwrap() {
                Delivered::File(path) => path,
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
