//! The media of stored inputs: equal media are stored once, as long as a session refers to them.

use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cog_media::{Media, MediaDirectory, MediaError, Stored};

use super::create_directory;

/// The maximum bytes of all media: 256 MiB.
const MAX_BYTES: u64 = 256 << 20;

/// The media of stored inputs, by their names: the hash of their content.
pub(crate) struct MediaFiles {
    /// None for sessions in memory.
    directory: Option<MediaDirectory>,
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
    /// The content, for sessions in memory.
    content: Option<Stored>,
}

impl MediaFiles {
    /// Creates a store without files.
    pub(crate) fn in_memory() -> Self {
        Self { directory: None, max_bytes: MAX_BYTES, state: Mutex::default() }
    }

    /// Creates a store in a directory, which is created if it does not exist. Only this user may read it.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn in_directory(path: &Path) -> io::Result<Self> {
        create_directory(path)?;
        Ok(Self { directory: Some(MediaDirectory::private(path)), ..Self::in_memory() })
    }

    /// Stores a media item, and counts a reference to it. Returns its name. Blocks on the disk.
    ///
    /// # Errors
    /// All media together would exceed the limit, or the file cannot be written.
    pub(crate) fn add(&self, media: &Media) -> Result<String, MediaError> {
        let name = MediaDirectory::name_of(media)?;
        let bytes = media.bytes().len();
        let is_new = self.reserve(&name, bytes, media)?;
        if let Some(directory) = self.directory.as_ref().filter(|_| is_new)
            && let Err(error) = directory.store(media)
        {
            self.release([name.as_str()]);
            return Err(error);
        }
        Ok(name)
    }

    /// Counts a reference. Returns whether there was none before.
    fn reserve(&self, name: &str, bytes: u64, media: &Media) -> Result<bool, MediaError> {
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(name) {
            file.references += 1;
            return Ok(false);
        }
        if state.bytes.saturating_add(bytes) > self.max_bytes {
            return Err(MediaError::TooLarge { limit: self.max_bytes });
        }
        state.bytes += bytes;
        let content = self.directory.is_none().then(|| media.bytes().clone());
        state.files.insert(name.to_owned(), File { references: 1, bytes, content });
        Ok(true)
    }

    /// Counts a reference that an earlier program stored. Returns whether the file exists.
    pub(crate) fn restore(&self, name: &str) -> bool {
        let Some(bytes) = self.directory.as_ref().and_then(|directory| directory.len_of(name).ok()) else {
            return false;
        };
        let mut state = self.lock();
        if let Some(file) = state.files.get_mut(name) {
            file.references += 1;
        } else {
            state.bytes = state.bytes.saturating_add(bytes);
            state.files.insert(name.to_owned(), File { references: 1, bytes, content: None });
        }
        true
    }

    /// Removes the files of an earlier program that no session refers to.
    pub(crate) fn remove_unreferenced(&self) {
        let state = self.lock();
        if let Some(directory) = &self.directory {
            directory.remove_except(|name| state.files.contains_key(name));
        }
    }

    /// Opens a media item. Blocks on the disk.
    ///
    /// # Errors
    /// It is not stored, or cannot be read.
    pub(crate) fn open(&self, name: &str) -> Result<Stored, MediaError> {
        if let Some(directory) = &self.directory {
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
                if let Some(directory) = &self.directory {
                    directory.remove(name);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cog_media::{Expected, MediaRules, Store, check};

    use super::*;

    /// Returns an image whose last byte is `mark`.
    async fn image(mark: u8) -> Media {
        let mut store = Store::with_limit(100);
        store.push(b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0").unwrap();
        store.push(&[mark]).unwrap();
        store.push(b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;").unwrap();
        check(store.finish(), &Expected::default(), &MediaRules::default(), None).await.unwrap()
    }

    fn names_in(path: &Path) -> Vec<String> {
        let names = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[tokio::test]
    async fn equal_media_are_one_file_until_the_last_reference() {
        let place = tempfile::tempdir().unwrap();
        let files = MediaFiles::in_directory(&place.path().join("media")).unwrap();
        let (one, other) = (image(1).await, image(2).await);
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
}
