use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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
