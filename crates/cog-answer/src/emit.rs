//! Emits the data of an answer while it arrives.

mod deltas;

use std::time::Duration;

use cog_harmony::citation::unfinished_anchor;
use cog_json::{Node, Value};
use cog_spec::Checkpoint;
use sha2::{Digest, Sha256};

pub(crate) use self::deltas::Deltas;
use crate::outbox::Outbox;

/// The maximum time that text is buffered (ruling R47).
const MAX_AGE: Duration = Duration::from_millis(50);

/// Buffers parts of one string until they are large or old enough. An anchor of a citation that has begun is held back
/// until it ends, so that it is never split between two deltas (appendix A.4.2).
#[derive(Debug)]
struct Buffer {
    size: usize,
    field: String,
    text: String,
    checkpoints: CheckpointHasher,
    since: Option<Duration>,
}

impl Buffer {
    /// Creates a buffer that emits at `size` bytes; 0 emits each part at once.
    fn new(size: u64) -> Self {
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
    fn open(&mut self, field: String) {
        self.field = field;
        self.checkpoints = CheckpointHasher::default();
    }

    /// Adds a part of it.
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Ends the string. Its last delta has a checkpoint (ruling R52), and is empty if all text was emitted before. An
    /// empty string is one empty delta (ruling R44).
    fn close(&mut self, out: &mut Outbox) {
        let text = std::mem::take(&mut self.text);
        self.emit(text, true, out);
    }

    /// Emits the buffered text.
    fn flush(&mut self, out: &mut Outbox) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.emit(text, false, out);
        }
    }

    /// Emits the buffered text if it is large or old enough.
    fn flush_due(&mut self, now: Duration, out: &mut Outbox) {
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
    fn due(&self) -> Option<Duration> {
        self.since.map(|since| since + MAX_AGE)
    }

    fn emit(&mut self, text: String, is_last: bool, out: &mut Outbox) {
        self.since = None;
        let checkpoint = self.checkpoints.add(&text, is_last);
        out.delta(&self.field, text, checkpoint);
    }
}

/// A string has a checkpoint after each of these many bytes (ruling R52).
const EVERY: u64 = 4096;

/// Hashes the emitted text of one string, so that a client can report how much of it arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckpointHasher {
    hash: Sha256,
    bytes: u64,
    /// Bytes at the last checkpoint.
    marked: u64,
}

impl CheckpointHasher {
    /// Adds a delta. Returns its checkpoint if it is the last of its string or the first after another 4,096 bytes.
    fn add(&mut self, delta: &str, is_last: bool) -> Option<Checkpoint> {
        self.push(delta);
        if !is_last && self.bytes / EVERY == self.marked / EVERY {
            return None;
        }
        self.marked = self.bytes;
        Some(self.checkpoint())
    }

    /// Adds a part of the text.
    pub(crate) fn push(&mut self, text: &str) {
        self.hash.update(text);
        self.bytes += text.len() as u64;
    }

    /// Returns the checkpoint of the text so far.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let digest = self.hash.clone().finalize();
        let hash = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        Checkpoint { offset: self.bytes, hash }
    }
}

/// The minimum time between two drafts (ruling R46).
const PAUSE: Duration = Duration::from_millis(50);

/// Emits all of the data repeatedly: `chunk_type: snapshot` (ruling R46).
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    sent: Option<Sent>,
}

/// The last draft that was emitted.
#[derive(Debug)]
struct Sent {
    at: Duration,
    bytes: usize,
}

impl Drafts {
    /// Emits the draft if it has grown enough. `bytes` is the length of the reply so far.
    pub(crate) fn flush_due(&mut self, draft: Node<'_>, bytes: usize, now: Duration, out: &mut Outbox) {
        let is_due = self.sent.as_ref().is_none_or(|sent| sent.is_outgrown(bytes, now));
        if is_due && !draft.is_empty() {
            self.sent = Some(Sent { at: now, bytes });
            out.snapshot("data", draft.to_value());
        }
    }

    /// Whether a draft was emitted.
    pub(crate) fn has_emitted(&self) -> bool {
        self.sent.is_some()
    }

    /// Emits the last draft of an incomplete answer.
    pub(crate) fn flush(&mut self, draft: Node<'_>, out: &mut Outbox) {
        if !draft.is_empty() {
            out.snapshot("data", draft.to_value());
        }
    }

    /// Emits the final data.
    pub(crate) fn finish(self, data: &Value, out: &mut Outbox) {
        out.snapshot("data", data.clone());
    }
}

impl Sent {
    fn is_outgrown(&self, bytes: usize, now: Duration) -> bool {
        now.saturating_sub(self.at) >= PAUSE && bytes >= self.bytes + self.bytes / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_delta_has_hash_of_complete_string() {
        let mut hasher = CheckpointHasher::default();
        assert_eq!(hasher.add("ab", false), None);
        // The SHA-256 of `abc` starts with ba7816bf.
        assert_eq!(hasher.add("c", true), Some(Checkpoint { offset: 3, hash: "ba7816".to_owned() }));
    }

    #[test]
    fn long_string_has_checkpoint_after_every_4096_bytes() {
        let mut hasher = CheckpointHasher::default();
        let part = "x".repeat(1000);
        let marks = (0..10).filter_map(|_| hasher.add(&part, false)).map(|mark| mark.offset);
        assert_eq!(marks.collect::<Vec<_>>(), [5000, 9000]);
    }
}
