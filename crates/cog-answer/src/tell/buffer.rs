use std::time::Duration;

use super::tally::Tally;
use crate::outbox::Outbox;

/// How long a piece of text is held at most (ruling R47).
const MAX_LEN: Duration = Duration::from_millis(50);

/// Holds pieces of one string until enough has come together.
#[derive(Debug)]
pub(super) struct Buffer {
    size: usize,
    field: String,
    text: String,
    told: Tally,
    since: Option<Duration>,
}

impl Buffer {
    /// A buffer that gives at `size` bytes; 0 gives as soon as it is asked to.
    pub(super) fn new(size: u64) -> Self {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Self { size, field: String::new(), text: String::new(), told: Tally::default(), since: None }
    }

    /// A string begins.
    pub(super) fn open(&mut self, field: String) {
        self.field = field;
        self.told = Tally::default();
    }

    /// More of it.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The string is over. Its last delta has a checkpoint (ruling R52), and is empty where all of it has left
    /// already; an empty string leaves as one empty delta (ruling R44).
    pub(super) fn close(&mut self, out: &mut Outbox) {
        self.give(true, out);
    }

    /// Gives what is held.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        if !self.text.is_empty() {
            self.give(false, out);
        }
    }

    /// Gives what is held if it is enough or old enough.
    pub(super) fn settle(&mut self, now: Duration, out: &mut Outbox) {
        if self.text.is_empty() {
            return;
        }
        let since = *self.since.get_or_insert(now);
        if self.text.len() >= self.size || now.saturating_sub(since) >= MAX_LEN {
            self.give(false, out);
        }
    }

    /// When what is held must leave at the latest.
    pub(super) fn due(&self) -> Option<Duration> {
        self.since.map(|since| since + MAX_LEN)
    }

    fn give(&mut self, is_last: bool, out: &mut Outbox) {
        self.since = None;
        let checkpoint = self.told.tell(&self.text, is_last);
        out.delta(&self.field, std::mem::take(&mut self.text), checkpoint);
    }
}
