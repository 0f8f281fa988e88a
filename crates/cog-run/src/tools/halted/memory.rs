use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_media::Media;

use super::stored::{MAX_BYTES, MAX_STATES, Stored};
use crate::private_files::MediaFiles;

/// The maximum size of all states in bytes; the oldest ones are removed.
const MAX_TOTAL: usize = 4 * MAX_BYTES;

/// States in memory.
#[derive(Debug)]
pub(super) struct Memory {
    states: Mutex<States>,
    media: Arc<MediaFiles>,
}

#[derive(Debug, Default)]
struct States {
    /// None if the run has continued.
    by_id: HashMap<String, Option<State>>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct State {
    text: String,
    /// The names of its media.
    media: Vec<String>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { states: Mutex::default(), media: Arc::new(MediaFiles::in_memory()) }
    }
}

impl Memory {
    pub(super) fn store(&self, id: &str, text: String, media: Vec<String>) {
        let mut states = self.lock();
        states.bytes += text.len();
        states.order.push_back(id.to_owned());
        states.by_id.insert(id.to_owned(), Some(State { text, media }));
        while states.order.len() > MAX_STATES || states.bytes > MAX_TOTAL && states.order.len() > 1 {
            let oldest = states.order.pop_front().and_then(|oldest| states.by_id.remove(&oldest));
            self.remove(&mut states, oldest.flatten());
        }
    }

    /// Removes the oldest states until there is room for media.
    pub(super) fn make_room(&self, media: &[(String, Media)]) {
        let mut states = self.lock();
        while self.media.is_too_full_for(media)
            && let Some(oldest) = states.order.pop_front()
        {
            let state = states.by_id.remove(&oldest).flatten();
            self.remove(&mut states, state);
        }
    }

    /// Returns the media of all states.
    pub(super) fn media(&self) -> Arc<MediaFiles> {
        Arc::clone(&self.media)
    }

    pub(super) fn read(&self, id: &str) -> Stored {
        match self.lock().by_id.get(id) {
            Some(Some(state)) => Stored::Text(state.text.clone()),
            Some(None) => Stored::Used,
            None => Stored::Unknown,
        }
    }

    /// Returns whether the state was not used before.
    pub(super) fn claim(&self, id: &str) -> bool {
        let mut states = self.lock();
        let state = states.by_id.get_mut(id).and_then(Option::take);
        let is_first = state.is_some();
        self.remove(&mut states, state);
        is_first
    }

    /// Frees what a state occupied.
    fn remove(&self, states: &mut States, state: Option<State>) {
        let Some(State { text, media }) = state else { return };
        states.bytes -= text.len();
        self.media.release(media.iter().map(String::as_str));
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cog_media::{Expected, MediaRules, Store, check, decode_base64};

    use super::*;

    async fn image(base64: &str) -> Media {
        let stored = decode_base64(base64, Store::with_limit(100)).unwrap();
        check(stored, &Expected::default(), &MediaRules::default(), None).await.unwrap()
    }

    #[tokio::test]
    async fn oldest_state_is_removed_for_the_media_of_the_next_one() {
        let first = image("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==").await;
        let next = image("UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=").await;
        let media = Arc::new(MediaFiles::in_memory_up_to(first.bytes().len()));
        let memory = Memory { states: Mutex::default(), media };
        for (id, item) in [("first", first), ("next", next)] {
            let media = [("upl_1".to_owned(), item)];
            memory.make_room(&media);
            let stored = memory.media().add_all(&media);
            assert_eq!(stored.len(), 1, "{id}");
            memory.store(id, "{}".to_owned(), stored.into_iter().map(|media| media.file).collect());
        }
        assert!(matches!(memory.read("first"), Stored::Unknown));
        assert!(matches!(memory.read("next"), Stored::Text(_)));
    }
}
