//! Emits the data of an answer while it arrives.

use std::time::Duration;

use cog_harmony::citation::unfinished_anchor;
use cog_json::{Event, EventKind, Kind, Node, Path, Segment, Value};
use cog_spec::Checkpoint;
use sha2::{Digest, Sha256};

use crate::{patch, sequencer::ChunkSequencer};

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
    fn close(&mut self, out: &mut ChunkSequencer) {
        let text = std::mem::take(&mut self.text);
        self.emit(text, true, out);
    }

    /// Emits the buffered text.
    fn flush(&mut self, out: &mut ChunkSequencer) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.emit(text, false, out);
        }
    }

    /// Emits the buffered text if it is large or old enough.
    fn flush_due(&mut self, now: Duration, out: &mut ChunkSequencer) {
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

    fn emit(&mut self, text: String, is_last: bool, out: &mut ChunkSequencer) {
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
    sent: Option<LastDraft>,
}

/// The last draft that was emitted.
#[derive(Debug)]
struct LastDraft {
    at: Duration,
    bytes: usize,
}

impl Drafts {
    /// Emits the draft if it has grown enough. `bytes` is the length of the reply so far.
    pub(crate) fn flush_due(
        &mut self,
        draft: Node<'_>,
        bytes: usize,
        now: Duration,
        out: &mut ChunkSequencer,
    ) {
        let is_due = self.sent.as_ref().is_none_or(|sent| sent.is_outgrown(bytes, now));
        if is_due && !draft.is_empty() {
            self.sent = Some(LastDraft { at: now, bytes });
            out.snapshot("data", draft.to_value());
        }
    }

    /// Returns whether a draft was emitted.
    pub(crate) fn has_emitted(&self) -> bool {
        self.sent.is_some()
    }

    /// Emits the last draft of an incomplete answer.
    pub(crate) fn flush(&mut self, draft: Node<'_>, out: &mut ChunkSequencer) {
        if !draft.is_empty() {
            out.snapshot("data", draft.to_value());
        }
    }

    /// Emits the final data.
    pub(crate) fn finish(self, data: &Value, out: &mut ChunkSequencer) {
        out.snapshot("data", data.clone());
    }
}

impl LastDraft {
    fn is_outgrown(&self, bytes: usize, now: Duration) -> bool {
        now.saturating_sub(self.at) >= PAUSE && bytes >= self.bytes + self.bytes / 4
    }
}

// Deltas.

/// Emits leaves: strings as deltas, other scalars and empty containers as snapshots (ruling R44).
#[derive(Debug)]
pub(crate) struct Deltas {
    buffer: Buffer,
    /// Nulls in objects are emitted at the end, because they may stand for omitted members.
    delays_nulls: bool,
    has_delayed: bool,
    /// For each open container whether an emitted chunk has created it.
    open: Vec<bool>,
    /// The value that starts replaces one that was emitted.
    is_replacing: bool,
    /// The emitted data can only be corrected by a snapshot of all data.
    is_stale: bool,
    has_emitted: bool,
}

impl Deltas {
    pub(crate) fn new(buffer_size: u64, delays_nulls: bool) -> Self {
        Self {
            buffer: Buffer::new(buffer_size),
            delays_nulls,
            has_delayed: false,
            open: Vec::new(),
            is_replacing: false,
            is_stale: false,
            has_emitted: false,
        }
    }

    /// Processes an event of the data. `path` is its path in the envelope.
    pub(crate) fn on_event(&mut self, path: &Path, event: &Event<'_>, out: &mut ChunkSequencer) {
        self.has_emitted = true;
        if self.open.is_empty() {
            // The container of the first value: the envelope, or bare data, which are recognised after they were
            // opened.
            self.open.push(false);
        }
        match event.kind {
            // A repeated key: the value that follows takes the place of one that a client has already.
            EventKind::Replaced => self.is_replacing = true,
            EventKind::Open => {
                let is_created = self.reset(path, event.node, out);
                self.open.push(is_created);
            }
            EventKind::Text { delta, first } => {
                if first {
                    self.reset(path, event.node, out);
                    self.mark_created();
                    self.buffer.open(path.to_string());
                }
                self.buffer.push(delta);
            }
            EventKind::Complete => self.complete(path, event.node, out),
            _ => {}
        }
    }

    /// Returns whether anything may have been emitted.
    pub(crate) fn has_emitted(&self) -> bool {
        self.has_emitted
    }

    /// Emits buffered text that is due.
    pub(crate) fn flush_due(&mut self, now: Duration, out: &mut ChunkSequencer) {
        self.buffer.flush_due(now, out);
    }

    /// Emits the buffered text of a string that has not ended.
    pub(crate) fn flush(&mut self, out: &mut ChunkSequencer) {
        self.buffer.flush(out);
    }

    /// Returns when the buffered text is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.buffer.due()
    }

    /// Emits the rest, so that all chunks add up to `data`. `changed` are the paths that differ from what arrived
    /// (ruling R45). `is_complete` is whether all events of the data were processed.
    pub(crate) fn finish(
        self,
        complete: &Value,
        changed: &[Path],
        is_complete: bool,
        out: &mut ChunkSequencer,
    ) {
        let data = complete.node();
        // Some events were not emitted as data, so that single corrections would not add up: all of it is sent again.
        if self.is_stale || !is_complete {
            if self.has_emitted {
                out.snapshot("data", empty(data.kind()));
            }
            return emit(data, &mut patch::data(), out);
        }
        for path in changed {
            if let Some(node) = patch::resolve(data, path) {
                out.snapshot(&path.to_string(), complete.child(node));
            }
        }
        if self.has_delayed {
            emit_nulls(data, &mut patch::data(), out);
        }
    }

    fn complete(&mut self, path: &Path, node: Node<'_>, out: &mut ChunkSequencer) {
        let replaces = std::mem::take(&mut self.is_replacing);
        match node.kind() {
            Kind::String => self.buffer.close(out),
            Kind::Array | Kind::Object => {
                // Leaves create their containers, so only an empty one needs a chunk of its own.
                if self.open.pop() == Some(false) {
                    out.snapshot(&path.to_string(), empty(node.kind()));
                }
                self.mark_created();
            }
            // A dialect that requires every member makes the model write null for absent ones, which are removed at the
            // end.
            Kind::Null if self.delays_nulls && matches!(path.last(), Some(Segment::Key(_))) => {
                self.is_stale |= replaces;
                self.has_delayed = true;
            }
            _ => {
                out.snapshot(&path.to_string(), node.to_value());
                self.mark_created();
            }
        }
    }

    /// The current container exists once a chunk inside it was emitted.
    fn mark_created(&mut self) {
        if let Some(is_created) = self.open.last_mut() {
            *is_created = true;
        }
    }

    /// Retracts the value that the new one replaces. Returns whether there was one.
    fn reset(&mut self, path: &Path, node: Node<'_>, out: &mut ChunkSequencer) -> bool {
        let replaces = std::mem::take(&mut self.is_replacing);
        if replaces {
            out.snapshot(&path.to_string(), empty(node.kind()));
        }
        replaces
    }
}

/// Emits the leaves of a complete value.
fn emit(node: Node<'_>, path: &mut Path, out: &mut ChunkSequencer) {
    if let Some(text) = node.as_str() {
        let checkpoint = CheckpointHasher::default().add(text, true);
        out.delta(&path.to_string(), text.to_owned(), checkpoint);
    } else if node.is_empty() {
        out.snapshot(&path.to_string(), node.to_value());
    } else {
        patch::each_inside(node, path, &mut |node, path| emit(node, path, out));
    }
}

/// Emits the delayed nulls of objects.
fn emit_nulls(node: Node<'_>, path: &mut Path, out: &mut ChunkSequencer) {
    if node.is_null() && matches!(path.last(), Some(Segment::Key(_))) {
        out.snapshot(&path.to_string(), node.to_value());
    }
    patch::each_inside(node, path, &mut |node, path| emit_nulls(node, path, out));
}

/// Returns the empty value of a kind.
fn empty(kind: Kind) -> Value {
    let text = match kind {
        Kind::Array => "[]",
        Kind::String => "\"\"",
        _ => "{}",
    };
    Value::parse(text).unwrap_or_default()
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
