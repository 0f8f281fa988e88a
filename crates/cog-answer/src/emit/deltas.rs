use std::time::Duration;

use cog_json::{Event, EventKind, Kind, Node, Path, Segment, Value};

use super::{Buffer, CheckpointHasher};
use crate::{outbox::Outbox, patch};

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
    pub(crate) fn on_event(&mut self, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        self.has_emitted = true;
        if self.open.is_empty() {
            // The container of the first value: the envelope, or bare data, which are recognised after they were opened.
            self.open.push(false);
        }
        match event.kind {
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

    /// Whether anything may have been emitted.
    pub(crate) fn has_emitted(&self) -> bool {
        self.has_emitted
    }

    /// Emits buffered text that is due.
    pub(crate) fn flush_due(&mut self, now: Duration, out: &mut Outbox) {
        self.buffer.flush_due(now, out);
    }

    /// Emits the buffered text of a string that has not ended.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        self.buffer.flush(out);
    }

    /// Returns when the buffered text is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.buffer.due()
    }

    /// Emits the rest, so that all chunks add up to `data`. `changed` are the paths that differ from what arrived
    /// (ruling R45). `is_complete` is whether all events of the data were processed.
    pub(crate) fn finish(self, complete: &Value, changed: &[Path], is_complete: bool, out: &mut Outbox) {
        let data = complete.node();
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

    fn complete(&mut self, path: &Path, node: Node<'_>, out: &mut Outbox) {
        let replaces = std::mem::take(&mut self.is_replacing);
        match node.kind() {
            Kind::String => self.buffer.close(out),
            Kind::Array | Kind::Object => {
                if self.open.pop() == Some(false) {
                    out.snapshot(&path.to_string(), empty(node.kind()));
                }
                self.mark_created();
            }
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
    fn reset(&mut self, path: &Path, node: Node<'_>, out: &mut Outbox) -> bool {
        let replaces = std::mem::take(&mut self.is_replacing);
        if replaces {
            out.snapshot(&path.to_string(), empty(node.kind()));
        }
        replaces
    }
}

/// Emits the leaves of a complete value.
fn emit(node: Node<'_>, path: &mut Path, out: &mut Outbox) {
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
fn emit_nulls(node: Node<'_>, path: &mut Path, out: &mut Outbox) {
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
