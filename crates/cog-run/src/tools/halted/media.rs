use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_media::Media;
use cog_store::{Key, KeyedStore};

use crate::media_files::MediaFiles;

/// The media of halted runs in memory.
#[derive(Debug)]
pub(super) struct MediaInMemory {
    files: Arc<MediaFiles>,
    /// The names of the media of each state.
    names: Mutex<HashMap<Key, Vec<String>>>,
}

impl Default for MediaInMemory {
    fn default() -> Self {
        Self { files: Arc::new(MediaFiles::in_memory()), names: Mutex::default() }
    }
}

impl MediaInMemory {
    pub(super) fn files(&self) -> Arc<MediaFiles> {
        Arc::clone(&self.files)
    }

    /// Removes states until there is room for media of this owner.
    pub(super) fn make_room(&self, states: &KeyedStore, owner: Option<&str>, media: &[(String, Media)]) {
        while self.files.is_too_full_for(media) && states.remove_oldest(owner) {
            self.release_removed(states);
        }
    }

    /// Keeps media as long as their state, which was stored before: it may have been removed since.
    pub(super) fn keep(&self, state: Key, media: Vec<String>, states: &KeyedStore) {
        self.lock().insert(state, media);
        self.release_removed(states);
    }

    /// Releases the media of states that were removed or claimed.
    pub(super) fn release_removed(&self, states: &KeyedStore) {
        self.lock().retain(|state, media| {
            let is_stored = states.contains(state);
            if !is_stored {
                self.files.release(media.iter().map(String::as_str));
            }
            is_stored
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<String>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cog_media::{MediaDeclaration, MediaRules, Store, check, decode_base64};

    use super::{super::LIMITS, *};
    use crate::clock;

    async fn image(base64: &str) -> Media {
        let stored = decode_base64(base64, Store::with_limit(100)).unwrap();
        check(stored, &MediaDeclaration::default(), &MediaRules::default(), None).await.unwrap()
    }

    #[tokio::test]
    async fn oldest_state_is_removed_for_the_media_of_the_next_one() {
        let first = image("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==").await;
        let next = image("UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=").await;
        let states = KeyedStore::in_memory(LIMITS);
        let files = Arc::new(MediaFiles::in_memory_up_to(first.bytes().len()));
        let in_memory = MediaInMemory { files, ..MediaInMemory::default() };
        let keys = [1, 2].map(|number| Key::new(None, format!("halt_{number:032x}")));
        for (key, item) in keys.iter().zip([first, next]) {
            let media = [("upl_1".to_owned(), item)];
            in_memory.make_room(&states, None, &media);
            let stored = in_memory.files.add_all(&media);
            assert_eq!(stored.len(), 1, "{key:?}");
            states.insert(key, b"{}", None, clock::now()).unwrap();
            in_memory.keep(key.clone(), stored.into_iter().map(|media| media.file).collect(), &states);
        }
        assert_eq!(keys.map(|key| states.contains(&key)), [false, true]);
    }
}
