//! The media of stored inputs: equal media are stored once, as long as a session refers to them.
//!
//! All owners share one limit. Beyond it, the owner whose media have the most bytes loses its oldest media, so that no client
//! removes the media of another one that has less. A run without stored media opens their sources again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
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
    /// The references of each owner, as the names of the files, the oldest first.
    references: HashMap<String, VecDeque<String>>,
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

    /// Stores media of an owner, each with its URL or upload. One that cannot be stored is left out: the run that continues opens
    /// it again. Blocks on the disk.
    pub(crate) fn add_all(&self, owner: &str, media: &[(String, Media)]) -> Vec<StoredMedia> {
        let mut stored = Vec::new();
        for (source, item) in media {
            match self.add(owner, item) {
                Ok(file) => {
                    let declared = item.hint().map(str::to_owned);
                    stored.push(StoredMedia { source: source.clone(), file, declared });
                }
                Err(error) => tracing::warn!(%error, "a media file of an input was not stored"),
            }
        }
        stored
    }

    /// Opens stored media, by their URLs and uploads. Blocks on the disk.
    pub(crate) fn open_all(&self, media: &[StoredMedia]) -> HashMap<String, SourceContent> {
        let mut opened = HashMap::new();
        for media in media {
            if let Ok(stored) = self.open(&media.file) {
                let content = SourceContent { stored, declared: media.declared.clone() };
                opened.insert(media.source.clone(), content);
            }
        }
        opened
    }

    /// Stores a media item, and counts a reference of its owner to it. Returns its name. Blocks on the disk.
    ///
    /// # Errors
    /// The media of this owner alone would exceed the limit, or the file cannot be written.
    pub(crate) fn add(&self, owner: &str, media: &Media) -> Result<String, MediaError> {
        let name = MediaDirectory::name_of(media)?;
        let is_complete = self.reserve(owner, &name, media)?;
        if let Some((path, directory)) = self.directory.as_ref().filter(|_| !is_complete) {
            // Others that add equal media at the same time write the file too: each may be the only one that can.
            let created = create_directory(path).map_err(MediaError::from);
            if let Err(error) = created.and_then(|()| directory.store(media)) {
                self.release(owner, [name.as_str()]);
                return Err(error);
            }
            match self.lock().files.get_mut(&name) {
                Some(file) => file.is_complete = true,
                // Another owner needed the room before the file was written.
                None => {
                    directory.remove(&name);
                    return Err(MediaError::TooLarge { limit: self.max_bytes });
                }
            }
        }
        Ok(name)
    }

    /// Counts a reference. Returns whether the file is complete already.
    fn reserve(&self, owner: &str, name: &str, media: &Media) -> Result<bool, MediaError> {
        let bytes = media.bytes().len();
        let mut state = self.lock();
        if !state.files.contains_key(name) {
            self.make_room(&mut state, owner, bytes)?;
            state.bytes += bytes;
            let content = self.directory.is_none().then(|| media.bytes().clone());
            state.files.insert(name.to_owned(), File { references: 0, bytes, content, is_complete: false });
        }
        state.references.entry(owner.to_owned()).or_default().push_back(name.to_owned());
        let Some(file) = state.files.get_mut(name) else { return Ok(false) };
        file.references += 1;
        Ok(file.is_complete)
    }

    /// Removes media until this owner can store so many bytes.
    ///
    /// # Errors
    /// They are more than all media may have, or this owner would have the most without media that could be removed.
    fn make_room(&self, state: &mut State, owner: &str, needed: u64) -> Result<(), MediaError> {
        let too_large = MediaError::TooLarge { limit: self.max_bytes };
        if needed > self.max_bytes {
            return Err(too_large);
        }
        while state.bytes > self.max_bytes - needed {
            let of_owner = state.bytes_of(owner) + needed;
            let others = state.references.keys().filter(|other| *other != owner);
            let largest = others.map(|other| (state.bytes_of(other), other.clone())).max();
            let payer = largest.filter(|(bytes, _)| *bytes > of_owner).map(|(_, other)| other);
            if !self.remove_oldest_of(state, payer.as_deref().unwrap_or(owner)) {
                return Err(too_large);
            }
        }
        Ok(())
    }

    /// Removes the oldest media item of an owner: all its references to it, and the file unless another owner refers to it.
    /// Returns whether there was one.
    fn remove_oldest_of(&self, state: &mut State, owner: &str) -> bool {
        let Some(names) = state.references.get_mut(owner) else { return false };
        let Some(oldest) = names.front().cloned() else { return false };
        let before = names.len();
        names.retain(|name| *name != oldest);
        let removed = before - names.len();
        if names.is_empty() {
            state.references.remove(owner);
        }
        self.remove_references(state, &oldest, removed);
        true
    }

    /// Removes references to a file, which is removed with the last one.
    fn remove_references(&self, state: &mut State, name: &str, count: usize) {
        let Some(file) = state.files.get_mut(name) else { return };
        file.references = file.references.saturating_sub(count);
        if file.references > 0 {
            return;
        }
        state.bytes -= file.bytes;
        state.files.remove(name);
        if let Some((_, directory)) = &self.directory {
            directory.remove(name);
        }
    }

    /// Counts a reference of this owner that an earlier program stored. Returns whether the file exists.
    pub(crate) fn restore(&self, owner: &str, name: &str) -> bool {
        let Some((_, directory)) = &self.directory else { return false };
        let Ok(bytes) = directory.len_of(name) else { return false };
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(name) {
            file.references += 1;
        } else {
            state.bytes = state.bytes.saturating_add(bytes);
            let file = File { references: 1, bytes, content: None, is_complete: true };
            state.files.insert(name.to_owned(), file);
        }
        state.references.entry(owner.to_owned()).or_default().push_back(name.to_owned());
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

    /// Removes references of an owner. Media without another one are removed.
    pub(crate) fn release<'a>(&self, owner: &str, names: impl IntoIterator<Item = &'a str>) {
        let mut state = self.lock();
        for name in names {
            // A reference is missing if it was removed to make room.
            let Some(own) = state.references.get_mut(owner) else { return };
            let Some(position) = own.iter().position(|known| known == name) else { continue };
            own.remove(position);
            if own.is_empty() {
                state.references.remove(owner);
            }
            self.remove_references(&mut state, name, 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the bytes of the files that an owner refers to.
    fn bytes_of(&self, owner: &str) -> u64 {
        let names: HashSet<&String> = self.references.get(owner).into_iter().flatten().collect();
        names.into_iter().filter_map(|name| self.files.get(name)).map(|file| file.bytes).sum()
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
        let names =
            [files.add("a", &one).unwrap(), files.add("a", &one).unwrap(), files.add("a", &other).unwrap()];
        assert_eq!(names[0], names[1]);
        assert_eq!(names_in(&place.path().join("media")).len(), 2);
        files.release("a", [names[0].as_str()]);
        assert_eq!(files.open(&names[0]).unwrap().len(), one.bytes().len());
        files.release("a", [names[0].as_str()]);
        assert_eq!(names_in(&place.path().join("media")), [names[2].clone()]);
        assert!(files.open(&names[0]).is_err());
    }

    #[tokio::test]
    async fn next_program_keeps_what_sessions_refer_to() {
        let place = tempfile::tempdir().unwrap();
        let files = MediaFiles::in_directory(place.path()).unwrap();
        let kept = files.add("a", &image(1).await).unwrap();
        files.add("a", &image(2).await).unwrap();
        let next = MediaFiles::in_directory(place.path()).unwrap();
        assert!(
            next.restore("a", &kept)
                && !next.restore("a", &kept.replace('a', "b"))
                && !next.restore("a", "../x")
        );
        next.remove_unreferenced();
        assert_eq!(names_in(place.path()), [kept]);
    }

    #[tokio::test]
    async fn owner_with_the_most_bytes_loses_its_oldest_media() {
        let place = tempfile::tempdir().unwrap();
        let bytes = image(1).await.bytes().len();
        for directory in [None, Some((place.path().to_owned(), MediaDirectory::private(place.path())))] {
            let files = MediaFiles { directory, max_bytes: 4 * bytes, ..MediaFiles::in_memory() };
            let shared = files.add("bob", &image(1).await).unwrap();
            assert_eq!(files.add("alice", &image(1).await).unwrap(), shared, "a reference needs no room");
            let mut of_alice = Vec::new();
            for mark in 2..10 {
                of_alice.push(files.add("alice", &image(mark).await).unwrap());
            }
            files.open(&shared).unwrap();
            let stored = of_alice.iter().filter(|name| files.open(name).is_ok());
            assert_eq!(stored.collect::<Vec<_>>(), of_alice[5..].iter().collect::<Vec<_>>());
            // What was removed is released without an effect on what is stored.
            files.release("alice", [shared.as_str(), of_alice[0].as_str()]);
            files.open(&shared).unwrap();
            // Another client gets its share from the one that has the most.
            let of_carol = files.add("carol", &image(10).await).unwrap();
            files.open(&of_carol).unwrap();
            assert!(files.open(&of_alice[5]).is_err());
            files.open(&shared).unwrap();
        }
    }

    #[tokio::test]
    async fn media_over_the_limit_are_not_stored() {
        let image = image(1).await;
        let files = MediaFiles { max_bytes: image.bytes().len() - 1, ..MediaFiles::in_memory() };
        assert!(files.add("a", &image).is_err());
        assert_eq!(files.lock().bytes, 0);
    }

    #[tokio::test]
    async fn file_that_one_writer_could_not_write_is_written_by_the_other() {
        let place = tempfile::tempdir().unwrap();
        let image = image(1).await;
        let files = MediaFiles::in_directory(place.path()).unwrap();
        let name = MediaDirectory::name_of(&image).unwrap();
        // One writer has begun. The other one must not rely on it.
        assert!(!files.reserve("a", &name, &image).unwrap());
        assert_eq!(files.add("a", &image).unwrap(), name);
        files.release("a", [name.as_str()]);
        assert_eq!(files.open(&name).unwrap().len(), image.bytes().len());
        files.remove_all();
        assert!(!place.path().exists());
    }
}
