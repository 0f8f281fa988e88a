use std::time::Duration;

use cog_json::{Event, EventKind, Kind, Node, Path, Segment, Value};

use super::{buffer::Buffer, tally::Tally};
use crate::{outbox::Outbox, place};

/// Tells leaves: strings by deltas, other scalars and empty containers by snapshots (ruling R44).
#[derive(Debug)]
pub(crate) struct Deltas {
    buffer: Buffer,
    /// Nulls of objects are told at the end, since they may stand for nothing.
    holds_nulls: bool,
    has_held: bool,
    /// For each open container whether anything was told that makes it arise.
    open: Vec<bool>,
    /// The value that begins takes the place of one that was told.
    is_replacing: bool,
    /// What was told can only be set right as a whole.
    is_stale: bool,
    has_told: bool,
}

impl Deltas {
    pub(crate) fn new(buffer_size: u64, holds_nulls: bool) -> Self {
        Self {
            buffer: Buffer::new(buffer_size),
            holds_nulls,
            has_held: false,
            open: Vec::new(),
            is_replacing: false,
            is_stale: false,
            has_told: false,
        }
    }

    /// MediaCapabilities an event of the data; `path` is where it stands in the envelope.
    pub(crate) fn hear(&mut self, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        self.has_told = true;
        if self.open.is_empty() && path.depth() > 1 {
            // Data that stand alone are recognised when they are open already.
            self.open.push(false);
        }
        match event.kind {
            EventKind::Replaced => self.is_replacing = true,
            EventKind::Open => {
                let has_arisen = self.reset(path, event.node, out);
                self.open.push(has_arisen);
            }
            EventKind::Text { delta, first } => {
                if first {
                    self.reset(path, event.node, out);
                    self.arise();
                    self.buffer.open(path.to_string());
                }
                self.buffer.push(delta);
            }
            EventKind::Complete => self.complete(path, event.node, out),
            _ => {}
        }
    }

    /// Whether anything was heard that may have been told.
    pub(crate) fn has_told(&self) -> bool {
        self.has_told
    }

    /// Gives what was held long enough.
    pub(crate) fn settle(&mut self, now: Duration, out: &mut Outbox) {
        self.buffer.settle(now, out);
    }

    /// Gives what is held, though its string is not over.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        self.buffer.flush(out);
    }

    /// When [`Deltas::settle`] is due at the latest.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.buffer.due()
    }

    /// Tells what is left, so that all chunks together give `data`. `changed` are the places where the answer is
    /// not what arrived (ruling R45); `was_heard` says that all of it was heard.
    pub(crate) fn conclude(self, whole: &Value, changed: &[Path], was_heard: bool, out: &mut Outbox) {
        let data = whole.node();
        if self.is_stale || !was_heard {
            if self.has_told {
                out.snapshot("data", empty(data.kind()));
            }
            return tell(data, &mut place::data(), out);
        }
        for path in changed {
            if let Some(node) = place::resolve(data, path) {
                out.snapshot(&path.to_string(), whole.child(node));
            }
        }
        if self.has_held {
            tell_nulls(data, &mut place::data(), out);
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
                self.arise();
            }
            Kind::Null if self.holds_nulls && matches!(path.last(), Some(Segment::Key(_))) => {
                self.is_stale |= replaces;
                self.has_held = true;
            }
            _ => {
                out.snapshot(&path.to_string(), node.to_value());
                self.arise();
            }
        }
    }

    /// The container at hand arises from what is told in it.
    fn arise(&mut self) {
        if let Some(has_arisen) = self.open.last_mut() {
            *has_arisen = true;
        }
    }

    /// MediaCapabilities back what stood in the place of the value that begins. Whether something did.
    fn reset(&mut self, path: &Path, node: Node<'_>, out: &mut Outbox) -> bool {
        let replaces = std::mem::take(&mut self.is_replacing);
        if replaces {
            out.snapshot(&path.to_string(), empty(node.kind()));
        }
        replaces
    }
}

/// Tells the leaves of a value that is complete.
fn tell(node: Node<'_>, path: &mut Path, out: &mut Outbox) {
    if let Some(text) = node.as_str() {
        let checkpoint = Tally::default().tell(text, true);
        out.delta(&path.to_string(), text.to_owned(), checkpoint);
    } else if node.is_empty() {
        out.snapshot(&path.to_string(), node.to_value());
    } else {
        place::each_inside(node, path, &mut |node, path| tell(node, path, out));
    }
}

/// Tells the nulls that stand in objects and were held back.
fn tell_nulls(node: Node<'_>, path: &mut Path, out: &mut Outbox) {
    if node.is_null() && matches!(path.last(), Some(Segment::Key(_))) && path.depth() > 1 {
        out.snapshot(&path.to_string(), node.to_value());
    }
    place::each_inside(node, path, &mut |node, path| tell_nulls(node, path, out));
}

/// The empty value of a kind.
fn empty(kind: Kind) -> Value {
    let text = match kind {
        Kind::Array => "[]",
        Kind::String => "\"\"",
        _ => "{}",
    };
    Value::parse(text).unwrap_or_default()
}
