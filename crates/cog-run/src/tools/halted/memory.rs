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
    by_id: HashMap<String, Entry>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
}

#[derive(Debug)]
struct Entry {
    /// None owns the operator's own runs.
    owner: Option<String>,
    /// None if the run has continued.
    state: Option<State>,
}

/// What an entry occupies.
#[derive(Clone, Copy, Default)]
struct Load {
    entries: usize,
    bytes: usize,
}

impl Load {
    fn add(&mut self, entry: &Entry) {
        self.entries += 1;
        self.bytes += entry.state.as_ref().map_or(0, |state| state.text.len());
    }
}

impl States {
    /// Returns what all clients occupy together, or the operator's own runs.
    fn load_of(&self, are_of_clients: bool) -> Load {
        let mut load = Load::default();
        for entry in self.by_id.values().filter(|entry| entry.owner.is_some() == are_of_clients) {
            load.add(entry);
        }
        load
    }
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
    pub(super) fn store(&self, id: &str, owner: Option<&str>, text: String, media: Vec<String>) {
        let mut states = self.lock();
        states.order.push_back(id.to_owned());
        let entry = Entry { owner: owner.map(str::to_owned), state: Some(State { text, media }) };
        states.by_id.insert(id.to_owned(), entry);
        while states.load_of(owner.is_some()).entries > MAX_STATES
            && self.remove_one(&mut states, owner, |load| load.entries)
        {}
        while states.load_of(owner.is_some()).bytes > MAX_TOTAL
            && self.remove_one(&mut states, owner, |load| load.bytes)
        {}
    }

    /// Removes states until there is room for media of this owner.
    pub(super) fn make_room(&self, owner: Option<&str>, media: &[(String, Media)]) {
        let mut states = self.lock();
        while self.media.is_too_full_for(media) && self.remove_one(&mut states, owner, |load| load.entries) {}
    }

    /// Makes room for a state of this owner: removes the oldest state of the client who has the most; for the operator, the
    /// oldest of its own. Returns false if there is none.
    fn remove_one(&self, states: &mut States, owner: Option<&str>, size: impl Fn(&Load) -> usize) -> bool {
        let mut loads = HashMap::<Option<&str>, Load>::new();
        for entry in states.by_id.values().filter(|entry| entry.owner.is_some() == owner.is_some()) {
            loads.entry(entry.owner.as_deref()).or_default().add(entry);
        }
        let Some(most) = loads.values().map(&size).max() else { return false };
        let of_most = |id: &String| {
            let owner = states.by_id.get(id).map(|entry| entry.owner.as_deref());
            owner.and_then(|owner| loads.get(&owner)).is_some_and(|load| size(load) == most)
        };
        let Some(at) = states.order.iter().position(of_most) else { return false };
        let oldest = states.order.remove(at).and_then(|id| states.by_id.remove(&id));
        self.remove(oldest.and_then(|entry| entry.state));
        true
    }

    /// Returns the media of all states.
    pub(super) fn media(&self) -> Arc<MediaFiles> {
        Arc::clone(&self.media)
    }

    pub(super) fn read(&self, id: &str) -> Stored {
        match self.lock().by_id.get(id) {
            Some(Entry { state: Some(state), .. }) => Stored::Text(state.text.clone()),
            Some(Entry { state: None, .. }) => Stored::Used,
            None => Stored::Unknown,
        }
    }

    /// Returns whether the state was not used before.
    pub(super) fn claim(&self, id: &str) -> bool {
        let state = self.lock().by_id.get_mut(id).and_then(|entry| entry.state.take());
        let is_first = state.is_some();
        self.remove(state);
        is_first
    }

    /// Frees what a state occupied.
    fn remove(&self, state: Option<State>) {
        let Some(State { media, .. }) = state else { return };
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
            memory.make_room(None, &media);
            let stored = memory.media().add_all(&media);
            assert_eq!(stored.len(), 1, "{id}");
            memory.store(id, None, "{}".to_owned(), stored.into_iter().map(|media| media.file).collect());
        }
        assert!(matches!(memory.read("first"), Stored::Unknown));
        assert!(matches!(memory.read("next"), Stored::Text(_)));
    }

    fn is_stored(memory: &Memory, id: &str) -> bool {
        matches!(memory.read(id), Stored::Text(_))
    }

    #[test]
    fn client_removes_its_own_oldest_states() {
        let memory = Memory::default();
        memory.store("operator", None, "{}".to_owned(), Vec::new());
        memory.store("bob", Some("token:bob"), "{}".to_owned(), Vec::new());
        for number in 0..MAX_STATES + 40 {
            memory.store(&format!("alice {number}"), Some("token:alice"), "{}".to_owned(), Vec::new());
            memory.claim(&format!("alice {number}"));
        }
        assert!(is_stored(&memory, "operator") && is_stored(&memory, "bob"));
        assert_eq!(memory.lock().order.len(), MAX_STATES + 1);
        assert!(matches!(memory.read("alice 40"), Stored::Unknown));
        assert!(matches!(memory.read("alice 41"), Stored::Used), "a used id stays known for as long");
    }

    #[test]
    fn client_cannot_remove_the_states_of_the_operator() {
        let memory = Memory::default();
        for number in 0..MAX_STATES {
            memory.store(&format!("operator {number}"), None, "{}".to_owned(), Vec::new());
        }
        memory.store("alice 1", Some("token:alice"), "{}".to_owned(), Vec::new());
        assert!(is_stored(&memory, "operator 0") && is_stored(&memory, "alice 1"));
    }
}
