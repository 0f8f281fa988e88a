use std::time::Duration;

use cog_harmony::citation::unfinished_anchor;

use super::checkpoint::CheckpointHasher;
use crate::outbox::Outbox;

/// The maximum time that text is buffered (ruling R47).
const MAX_AGE: Duration = Duration::from_millis(50);

/// Buffers parts of one string until they are large or old enough. An anchor of a citation that has begun is held back
/// until it ends, so that it is never split between two deltas (appendix A.4.2).
#[derive(Debug)]
pub(super) struct Buffer {
    size: usize,
    field: String,
    text: String,
    checkpoints: CheckpointHasher,
    since: Option<Duration>,
}

impl Buffer {
    /// Creates a buffer that emits at `size` bytes; 0 emits each part at once.
    pub(super) fn new(size: u64) -> Self {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Self {
            size,
            field: String::new(),
            text: String::new(),
            checkpoints: CheckpointHasher::default(),
            since: None,
        }
    }

    /// Starts a string.
    pub(super) fn open(&mut self, field: String) {
        self.field = field;
        self.checkpoints = CheckpointHasher::default();
    }

    /// Adds a part of it.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Ends the string. Its last delta has a checkpoint (ruling R52), and is empty if all text was emitted before. An
    /// empty string is one empty delta (ruling R44).
    pub(super) fn close(&mut self, out: &mut Outbox) {
        let text = std::mem::take(&mut self.text);
        self.emit(text, true, out);
    }

    /// Emits the buffered text.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.emit(text, false, out);
        }
    }

    /// Emits the buffered text if it is large or old enough.
    pub(super) fn flush_due(&mut self, now: Duration, out: &mut Outbox) {
        let end = unfinished_anchor(&self.text);
        if end == 0 {
            return;
        }
        let since = *self.since.get_or_insert(now);
        if end >= self.size || now.saturating_sub(since) >= MAX_AGE {
            let held_back = self.text.split_off(end);
            let text = std::mem::replace(&mut self.text, held_back);
            self.emit(text, false, out);
        }
    }

    /// Returns when the buffered text is due.
    pub(super) fn due(&self) -> Option<Duration> {
        self.since.map(|since| since + MAX_AGE)
    }

    fn emit(&mut self, text: String, is_last: bool, out: &mut Outbox) {
        self.since = None;
        let checkpoint = self.checkpoints.add(&text, is_last);
        out.delta(&self.field, text, checkpoint);
    }
}
