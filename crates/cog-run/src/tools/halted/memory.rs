use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::stored::{MAX_BYTES, MAX_STATES, Stored};

/// The maximum size of all states in bytes; the oldest ones are removed.
const MAX_TOTAL: usize = 4 * MAX_BYTES;

/// States in memory.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<States>);

#[derive(Debug, Default)]
struct States {
    /// None if the run has continued.
    texts: HashMap<String, Option<String>>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Memory {
    pub(super) fn store(&self, id: &str, text: String) {
        let mut states = self.lock();
        states.bytes += text.len();
        states.order.push_back(id.to_owned());
        states.texts.insert(id.to_owned(), Some(text));
        while states.order.len() > MAX_STATES || states.bytes > MAX_TOTAL && states.order.len() > 1 {
            let oldest = states.order.pop_front().and_then(|oldest| states.texts.remove(&oldest));
            states.bytes -= oldest.flatten().map_or(0, |text| text.len());
        }
    }

    pub(super) fn read(&self, id: &str) -> Stored {
        match self.lock().texts.get(id) {
            Some(Some(text)) => Stored::Text(text.clone()),
            Some(None) => Stored::Used,
            None => Stored::Unknown,
        }
    }

    /// Returns whether the state was not used before.
    pub(super) fn claim(&self, id: &str) -> bool {
        let mut states = self.lock();
        let text = states.texts.get_mut(id).and_then(Option::take);
        states.bytes -= text.as_ref().map_or(0, String::len);
        text.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
