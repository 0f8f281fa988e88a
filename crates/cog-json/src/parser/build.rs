//! Putting values onto the tape, and emitting their events.

use crate::error::SyntaxErrorKind;
use crate::event::{Event, EventKind};
use crate::node::Node;
use crate::parser::ErrorAt;
use crate::parser::Sink;
use crate::parser::machine::{Expect, Machine, Step};
use crate::parser::tolerance::{LedgerTarget, Tolerance};
use crate::tape::{Entry, Tag, fingerprint};
use crate::write::ToJson;

/// The index of the first key of the root.
const FIRST_KEY: u32 = 1;

/// An open container.
pub(super) struct Frame {
    pub(super) container: u32,
    pub(super) object: bool,
    /// The number of children so far; written to the tape at the end of each chunk.
    pub(super) count: u32,
    /// The number of keys so far, duplicates included.
    keys: u32,
    /// The key entry of the current member.
    pub(super) key: u32,
    /// An earlier key entry with the same key, or 0: entry 0 is the root, never a key.
    earlier: u32,
    /// A filter with one bit per fingerprint: a key whose bit is not set is new.
    seen: u64,
}

impl Machine {
    #[inline]
    pub(super) fn open<S: Sink>(&mut self, tag: Tag, expect: Expect, sink: &mut S) -> Step {
        // Before the container is on the tape, so that no event tells of one that is refused.
        if self.frames.len() >= self.limits.depth as usize {
            return Err((SyntaxErrorKind::TooDeep, self.pos));
        }
        let container = self.begin(Entry::open(tag, self.pos), sink)?;
        self.pos += 1;
        self.expect = expect;
        let object = tag == Tag::Object;
        self.frames.push(Frame { container, object, count: 0, keys: 0, key: 0, earlier: 0, seen: 0 });
        self.emit(container, EventKind::Open, sink);
        Ok(true)
    }

    #[inline]
    pub(super) fn close<S: Sink>(&mut self, sink: &mut S) -> Step {
        self.pos += 1;
        if let Some(frame) = self.frames.pop() {
            // The index after the container lets a walk over its parent skip all of its contents.
            let next = self.tape.len();
            self.tape.update(frame.container, |entry| {
                entry.set_len(frame.count as usize);
                entry.close(next);
            });
            self.complete(frame.container, sink);
        }
        Ok(true)
    }

    /// Adds a complete value.
    #[inline]
    pub(super) fn scalar<S: Sink>(&mut self, entry: Entry, sink: &mut S) -> Step {
        let index = self.begin(entry, sink)?;
        self.complete(index, sink);
        Ok(true)
    }

    /// Adds a value to the tape and to the current container.
    #[inline(always)]
    pub(super) fn begin<S: Sink>(&mut self, entry: Entry, sink: &mut S) -> Result<u32, ErrorAt> {
        let index = self.tape.len();
        if index >= self.limits.nodes {
            return Err((SyntaxErrorKind::TooMany, entry.start()));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.tape.entries.push(entry);
            return Ok(index);
        };
        // Set by the key before. The earlier member stays in the draft until here, where its new value begins.
        let earlier = std::mem::take(&mut frame.earlier);
        // The step of a member was added with its key.
        if S::LIVE && !frame.object {
            self.path.push_index(frame.count as usize);
        }
        // A duplicate replaces a member and adds none.
        frame.count += u32::from(earlier == 0);
        if frame.object {
            frame.keys += 1;
            self.tape.add_member(frame.container, frame.key, earlier, frame.keys);
        }
        self.tape.entries.push(entry);
        if earlier != 0 {
            self.note_duplicate(earlier);
            self.emit(index, EventKind::Replaced, sink);
        }
        Ok(index)
    }

    #[cold]
    fn note_duplicate(&mut self, earlier: u32) {
        let replaced = Node { tape: &self.tape, index: earlier + 1 }.to_json().len();
        self.note(Tolerance::DuplicateKey, LedgerTarget::Value, replaced, 0);
    }

    /// Continues after a value.
    #[inline]
    pub(super) fn complete<S: Sink>(&mut self, index: u32, sink: &mut S) {
        self.emit(index, EventKind::Complete, sink);
        let Some(frame) = self.frames.last() else {
            self.expect = Expect::End;
            return;
        };
        if S::LIVE {
            self.path.pop();
        }
        // A comma usually follows directly.
        self.expect = match self.tape.text.as_bytes().get(self.pos) {
            Some(b',') if frame.object => Expect::Key,
            Some(b',') => Expect::Element,
            _ => Expect::Comma,
        };
        self.pos += usize::from(self.expect != Expect::Comma);
    }

    /// Adds a complete key; `entry` is its string.
    #[inline(always)]
    pub(super) fn add_key<S: Sink>(&mut self, entry: Entry) -> Step {
        let index = self.tape.len();
        if index >= self.limits.nodes {
            return Err((SyntaxErrorKind::TooMany, entry.start()));
        }
        let key = self.tape.string(entry);
        let print = fingerprint(key.as_bytes());
        if let Some(frame) = self.frames.last_mut() {
            // Most keys are new: the filter says so without a search.
            let bit = 1_u64 << (print % 64);
            if frame.seen & bit != 0 {
                frame.earlier = self.tape.find(frame.container, key, print).unwrap_or(0);
            }
            frame.seen |= bit;
            frame.key = index;
        }
        if S::LIVE && !self.is_wrapper(index, key) {
            self.path.push_key(key);
        }
        self.tape.entries.push(entry.with_key(print));
        // A colon usually follows directly.
        let colon = self.tape.text.as_bytes().get(self.pos) == Some(&b':');
        self.pos += usize::from(colon);
        self.expect = if colon { Expect::Value } else { Expect::Colon };
        Ok(true)
    }

    /// Returns whether the value of the key at this index has the path of the root. Only the first key of the root can
    /// wrap.
    #[inline]
    pub(super) fn is_wrapper(&self, index: u32, key: &str) -> bool {
        self.wrapper.is_some_and(|wrapper| index == FIRST_KEY && key == wrapper)
    }

    #[inline]
    pub(super) fn emit<S: Sink>(&self, index: u32, kind: EventKind<'_>, sink: &mut S) {
        if S::LIVE {
            sink.emit(Event { path: &self.path, node: Node { tape: &self.tape, index }, kind });
        }
    }
}
