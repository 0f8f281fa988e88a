//! The media of stored inputs: equal media are stored once, as long as a session refers to them.

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cog_media::{Media, MediaDirectory, MediaError, SourceContent, Stored};
use cog_store::private::create_directory;
use serde::{Deserialize, Serialize};

/// The maximum bytes of all media: 256 MiB.
const MAX_BYTES: u64 = 256 << 20;

/// The media of stored inputs, by their names: the hash of their content.
pub(crate) struct MediaFiles {
    /// None for media in memory.
    directory: Option<(PathBuf, MediaDirectory)>,
    max_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, File>,
    /// The bytes of all files.
    bytes: u64,
}

struct File {
    /// The number of references. The file is removed with the last one.
    references: usize,
    bytes: u64,
    /// The content, for media in memory.
    content: Option<Stored>,
    /// Whether it is complete in the directory.
    is_complete: bool,
}

/// A stored media item of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredMedia {
    /// Its URL or upload.
    pub(crate) source: String,
    /// Its name among the stored media.
    pub(crate) file: String,
    /// The type that its server declared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    declared: Option<String>,
}

impl MediaFiles {
    /// Creates a store without files.
    pub(crate) fn in_memory() -> Self {
        Self::in_memory_up_to(MAX_BYTES)
    }

    /// Creates a store without files. All media may have this many bytes.
    pub(crate) fn in_memory_up_to(max_bytes: u64) -> Self {
        Self { directory: None, max_bytes, state: Mutex::default() }
    }

    /// Creates a store in a directory, which is created if it does not exist. Only this user may read it.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn in_directory(path: &Path) -> io::Result<Self> {
        create_directory(path)?;
        Ok(Self::below(path, MAX_BYTES))
    }

    /// Returns the store in a directory, which is created with the first file. All media may have this many bytes.
    pub(crate) fn below(path: &Path, max_bytes: u64) -> Self {
        let directory = (path.to_owned(), MediaDirectory::private(path));
        Self { directory: Some(directory), max_bytes, ..Self::in_memory() }
    }

    /// Stores media, each with its URL or upload. One that cannot be stored is left out: the run that continues opens it again.
    /// Blocks on the disk.
    pub(crate) fn add_all(&self, media: &[(String, Media)]) -> Vec<StoredMedia> {
        let add = |(source, item): &(String, Media)| {
            let added = self.add(item).inspect_err(|error| {
                tracing::warn!(%error, "a media file of an input was not stored");
            });
            let declared = item.hint().map(str::to_owned);
            Some(StoredMedia { source: source.clone(), file: added.ok()?, declared })
        };
        media.iter().filter_map(add).collect()
    }

    /// Returns whether others must be removed before these media can be stored.
    pub(crate) fn is_too_full_for(&self, media: &[(String, Media)]) -> bool {
        let needed: u64 = media.iter().map(|(_, item)| item.bytes().len()).sum();
        needed <= self.max_bytes && self.lock().bytes > self.max_bytes - needed
    }

    /// Opens stored media, by their URLs and uploads. Blocks on the disk.
    pub(crate) fn open_all(&self, media: &[StoredMedia]) -> HashMap<String, SourceContent> {
        let open = |media: &StoredMedia| {
            let stored = self.open(&media.file).ok()?;
            Some((media.source.clone(), SourceContent { stored, declared: media.declared.clone() }))
        };
        media.iter().filter_map(open).collect()
    }

    /// Stores a media item, and counts a reference to it. Returns its name. Blocks on the disk.
    ///
    /// # Errors
    /// All media together would exceed the limit, or the file cannot be written.
    pub(crate) fn add(&self, media: &Media) -> Result<String, MediaError> {
        let name = MediaDirectory::name_of(media)?;
        let bytes = media.bytes().len();
        let is_complete = self.reserve(&name, bytes, media)?;
        if let Some((path, directory)) = self.directory.as_ref().filter(|_| !is_complete) {
            // Others that add equal media at the same time write the file too: each may be the only one that can.
            let created = create_directory(path).map_err(MediaError::from);
            if let Err(error) = created.and_then(|()| directory.store(media)) {
                self.release([name.as_str()]);
                return Err(error);
            }
            if let Some(file) = self.lock().files.get_mut(&name) {
                file.is_complete = true;
            }
        }
        Ok(name)
    }

    /// Counts a reference. Returns whether the file is complete already.
    fn reserve(&self, name: &str, bytes: u64, media: &Media) -> Result<bool, MediaError> {
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(name) {
            file.references += 1;
            return Ok(file.is_complete);
        }
        if state.bytes.saturating_add(bytes) > self.max_bytes {
            return Err(MediaError::TooLarge { limit: self.max_bytes });
        }
        state.bytes += bytes;
        let content = self.directory.is_none().then(|| media.bytes().clone());
        state.files.insert(name.to_owned(), File { references: 1, bytes, content, is_complete: false });
        Ok(false)
    }

    /// Counts a reference that an earlier program stored. Returns whether the file exists.
    pub(crate) fn restore(&self, name: &str) -> bool {
        let length = |(_, directory): &(_, MediaDirectory)| directory.len_of(name).ok();
        let Some(bytes) = self.directory.as_ref().and_then(length) else { return false };
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(name) {
            file.references += 1;
        } else {
            state.bytes = state.bytes.saturating_add(bytes);
            let file = File { references: 1, bytes, content: None, is_complete: true };
            state.files.insert(name.to_owned(), file);
        }
        true
    }

    /// Removes the files of an earlier program that no session refers to.
    pub(crate) fn remove_unreferenced(&self) {
        let state = self.lock();
        if let Some((_, directory)) = &self.directory {
            directory.remove_except(|name| state.files.contains_key(name));
        }
    }

    /// Removes all files, and their directory.
    pub(crate) fn remove_all(&self) {
        *self.lock() = State::default();
        if let Some((path, directory)) = &self.directory {
            directory.remove_except(|_| false);
            let _ = fs::remove_dir(path);
        }
    }

    /// Opens a media item. Blocks on the disk.
    ///
    /// # Errors
    /// It is not stored, or cannot be read.
    pub(crate) fn open(&self, name: &str) -> Result<Stored, MediaError> {
        if let Some((_, directory)) = &self.directory {
            return directory.open(name, self.max_bytes);
        }
        let content = self.lock().files.get(name).and_then(|file| file.content.clone());
        content.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// Removes references. Media without another one are removed.
    pub(crate) fn release<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut state = self.lock();
        for name in names {
            let Some(file) = state.files.get_mut(name) else { continue };
            file.references -= 1;
            if file.references == 0 {
                let bytes = file.bytes;
                state.bytes -= bytes;
                state.files.remove(name);
                if let Some((_, directory)) = &self.directory {
                    directory.remove(name);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MediaFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaFiles")
    }
}

#[cfg(test)]
mod tests {
    use cog_media::{MediaDeclaration, MediaRules, Store, check};

    use super::*;

    /// Returns an image whose last byte is `mark`.
    async fn image(mark: u8) -> Media {
        let mut store = Store::with_limit(100);
        store.push(b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0").unwrap();
        store.push(&[mark]).unwrap();
        store.push(b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;").unwrap();
        check(store.finish(), &MediaDeclaration::default(), &MediaRules::default(), None).await.unwrap()
    }

    fn names_in(path: &Path) -> Vec<String> {
        let names = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[tokio::test]
    async fn equal_media_are_one_file_until_the_last_reference() {
        let place = tempfile::tempdir().unwrap();
        let files = MediaFiles::in_directory(&place.path().join("media")).unwrap();
        let one = image(1).await;
        let other = image(2).await;
        let names = [files.add(&one).unwrap(), files.add(&one).unwrap(), files.add(&other).unwrap()];
        assert_eq!(names[0], names[1]);
        assert_eq!(names_in(&place.path().join("media")).len(), 2);
        files.release([names[0].as_str()]);
        assert_eq!(files.open(&names[0]).unwrap().len(), one.bytes().len());
        files.release([names[0].as_str()]);
        assert_eq!(names_in(&place.path().join("media")), [names[2].clone()]);
        assert!(files.open(&names[0]).is_err());
    }

    #[tokio::test]
    async fn next_program_keeps_what_sessions_refer_to() {
        let place = tempfile::tempdir().unwrap();
        let files = MediaFiles::in_directory(place.path()).unwrap();
        let kept = files.add(&image(1).await).unwrap();
        files.add(&image(2).await).unwrap();
        let next = MediaFiles::in_directory(place.path()).unwrap();
        assert!(next.restore(&kept) && !next.restore(&kept.replace('a', "b")) && !next.restore("../x"));
        next.remove_unreferenced();
        assert_eq!(names_in(place.path()), [kept]);
    }

    #[tokio::test]
    async fn media_over_the_limit_are_not_stored() {
        let image = image(1).await;
        let files = MediaFiles { max_bytes: image.bytes().len(), ..MediaFiles::in_memory() };
        let name = files.add(&image).unwrap();
        assert_eq!(files.add(&image).unwrap(), name, "a reference needs no room");
        assert!(files.add(&self::image(2).await).is_err());
        files.release([name.as_str(), name.as_str()]);
        assert!(files.open(&name).is_err());
        files.add(&self::image(2).await).unwrap();
    }
    #[tokio::test]
    async fn file_that_one_writer_could_not_write_is_written_by_the_other() {
        let place = tempfile::tempdir().unwrap();
        let image = image(1).await;
        let files = MediaFiles::in_directory(place.path()).unwrap();
        let name = MediaDirectory::name_of(&image).unwrap();
        // One writer has begun. The other one must not rely on it.
        assert!(!files.reserve(&name, image.bytes().len(), &image).unwrap());
        assert_eq!(files.add(&image).unwrap(), name);
        files.release([name.as_str()]);
        assert_eq!(files.open(&name).unwrap().len(), image.bytes().len());
        files.remove_all();
        assert!(!place.path().exists());
    }
}
