//! What outlives a connection to a server.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

use crate::calls::OpenCalls;

/// What the connections to a server have in common, one after the other.
#[derive(Default)]
pub(crate) struct Shared {
    /// Whether the server ended at the first request of the current revision.
    pub(crate) is_old: AtomicBool,
    /// Whether the server said that its tools have changed.
    pub(crate) is_stale: AtomicBool,
    pub(crate) changed: Notify,
    pub(crate) calls: OpenCalls,
    last_words: Mutex<VecDeque<String>>,
}

/// The number of lines of a server's stderr that an error repeats.
const LAST_WORDS: usize = 3;

impl Shared {
    /// Notes that the server has other tools.
    pub(crate) fn note_change(&self) {
        self.is_stale.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Notes a line of the server's stderr.
    pub(crate) fn note_line(&self, line: &str) {
        let line: String = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
        if !line.trim().is_empty() {
            let mut words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
            words.push_back(line);
            if words.len() > LAST_WORDS {
                words.pop_front();
            }
        }
    }

    /// Returns the last lines of the server's stderr for an error, which shows them once.
    pub(crate) fn last_words(&self) -> String {
        let lines = std::mem::take(&mut *self.last_words.lock().unwrap_or_else(PoisonError::into_inner));
        match lines.is_empty() {
            true => String::new(),
            false => format!("; it wrote: {}", Vec::from(lines).join(" / ")),
        }
    }
}
