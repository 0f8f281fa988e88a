//! Finding the document in a reply that contains more than JSON.
//!
//! Prose has brackets too: `{name}`, `[1]`, `{"a"}`. A bracket starts the document only if a key and a colon
//! follow it, possibly after more opening brackets. No event is emitted before. Text that opens like an object in a form
//! that the parser does not read is found too ([`opening`]): it is not prose. The text of a false start is read again as
//! prose, but never twice for one kind of quote, so that the search is linear: a key ends at the next quote of its kind,
//! and a false start inside the key would need that quote.

use std::ops::ControlFlow;

use crate::parser::opening::{self, Look};
use crate::parser::reasoning::{self, Tag};
use crate::scan::{self, string_run};

/// The first byte of `◁`.
const TAG: u8 = 0xe2;

/// Searches the start of a document, over any number of chunks.
pub(super) struct Seeker {
    /// The first byte that was not examined.
    pos: usize,
    phase: Phase,
    /// The first bracket of the current candidate.
    start: usize,
    /// The offset at which to continue if the candidate is prose.
    retry: usize,
    /// The number of opening brackets of the candidate.
    depth: usize,
    max_depth: usize,
    /// The start of the reply, after reasoning.
    body: usize,
    /// The start of the reply if a closing tag in its text ends reasoning too.
    tail: usize,
    /// Whether a closing tag ends the search.
    stops_at_tag: bool,
    /// Whether what was found has another form than JSON.
    is_wider: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At the start of the reply, or after reasoning: where reasoning may begin.
    Start,
    /// Inside reasoning, up to one of these tags.
    Reasoning(&'static [&'static str]),
    Prose,
    /// After `[`.
    InArray,
    /// After `{`.
    InObject,
    Key(u8),
    AfterKey,
    /// In a comment, to return to where it began.
    Comment {
        block: bool,
        back: Back,
    },
}

/// The position of a comment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    InArray,
    InObject,
    AfterKey,
}

/// Breaks with the start of the document, or with nothing at the end of the text.
type Found = ControlFlow<Option<usize>>;

impl Seeker {
    /// Searches from the start of a reply.
    pub(super) fn new(max_depth: usize) -> Self {
        Seeker {
            pos: 0,
            phase: Phase::Start,
            start: 0,
            retry: 0,
            depth: 0,
            max_depth,
            body: 0,
            tail: 0,
            stops_at_tag: false,
            is_wider: false,
        }
    }

    /// Searches another object after a document, up to the first closing tag.
    pub(super) fn after(pos: usize, max_depth: usize) -> Self {
        Seeker { pos, phase: Phase::Prose, stops_at_tag: true, ..Self::new(max_depth) }
    }

    /// Searches after the closing tag of reasoning.
    pub(super) fn after_reasoning(pos: usize, max_depth: usize) -> Self {
        Seeker { pos, body: pos, tail: pos, ..Self::new(max_depth) }
    }

    /// Returns the start of the document, if the text shows it.
    pub(super) fn seek(&mut self, text: &str) -> Option<usize> {
        loop {
            if let ControlFlow::Break(found) = self.step(text) {
                return found;
            }
        }
    }

    /// Searches again at the end of the text, where an incomplete candidate is prose.
    pub(super) fn seek_at_end(&mut self, text: &str) -> Option<usize> {
        while self.is_candidate() {
            (self.pos, self.phase) = (self.retry, Phase::Prose);
            if let Some(start) = self.seek(text) {
                return Some(start);
            }
        }
        None
    }

    /// Returns the start of an incomplete candidate.
    pub(super) fn candidate(&self) -> Option<usize> {
        self.is_candidate().then_some(self.start)
    }

    /// Returns how far the text was examined.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    /// Whether what was found has another form than JSON.
    pub(super) fn is_wider(&self) -> bool {
        self.is_wider
    }

    /// Returns the start of the reply, after reasoning.
    pub(super) fn body(&self) -> usize {
        self.body
    }

    /// Returns the start of the reply if a closing tag in its text ends reasoning too.
    pub(super) fn tail(&self) -> usize {
        self.tail
    }

    /// Whether the reply ends inside its reasoning.
    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self.phase, Phase::Reasoning(_))
    }

    fn is_candidate(&self) -> bool {
        !matches!(self.phase, Phase::Start | Phase::Prose | Phase::Reasoning(_))
    }

    fn step(&mut self, text: &str) -> Found {
        let bytes = text.as_bytes();
        match self.phase {
            Phase::Start => self.look_for_reasoning(text),
            Phase::Reasoning(closing) => self.skip_reasoning(text, closing),
            Phase::Prose => self.skip_prose(text),
            Phase::InArray | Phase::InObject | Phase::AfterKey => self.look_on(text),
            Phase::Key(quote) => self.read_key(bytes, quote),
            Phase::Comment { block, back } => self.skip_comment(text, block, back),
        }
    }

    fn look_for_reasoning(&mut self, text: &str) -> Found {
        let start = scan::space(text.as_bytes(), self.pos);
        match reasoning::opening_tag(text.get(start..).unwrap_or_default()) {
            Tag::Found(length, closing) => {
                self.pos = start + length;
                self.go_on(Phase::Reasoning(closing))
            }
            Tag::Cut => ControlFlow::Break(None),
            Tag::None => self.go_on(Phase::Prose),
        }
    }

    fn skip_reasoning(&mut self, text: &str, closing: &[&str]) -> Found {
        match reasoning::end_of_reasoning(text, self.pos, closing) {
            Ok(end) => {
                (self.pos, self.body, self.tail) = (end, end, end);
                self.go_on(Phase::Start)
            }
            Err(pos) => {
                self.pos = pos;
                ControlFlow::Break(None)
            }
        }
    }

    fn skip_prose(&mut self, text: &str) -> Found {
        let bytes = text.as_bytes();
        let rest = bytes.get(self.pos..).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte | 0x20 == b'{' || matches!(byte, b'<' | TAG))
        else {
            self.pos = bytes.len();
            return ControlFlow::Break(None);
        };
        self.pos += length;
        if matches!(bytes.get(self.pos), Some(b'<' | &TAG)) {
            return self.pass_tag(text);
        }
        self.start = self.pos;
        self.depth = 0;
        self.enter(bytes)
    }

    /// Where reasoning may end without an opening tag.
    fn pass_tag(&mut self, text: &str) -> Found {
        let rest = text.get(self.pos..).unwrap_or_default();
        match reasoning::closing_tag_at(rest) {
            Tag::Found(length, ()) => self.end_reasoning(self.pos + length),
            Tag::Cut => ControlFlow::Break(None),
            Tag::None => self.dismiss(self.pos + rest.chars().next().map_or(1, char::len_utf8)),
        }
    }

    /// Continues after the closing tag of reasoning that has no opening tag.
    fn end_reasoning(&mut self, end: usize) -> Found {
        (self.pos, self.tail, self.phase) = (end, end, Phase::Prose);
        if self.stops_at_tag { ControlFlow::Break(None) } else { ControlFlow::Continue(()) }
    }

    /// At an opening bracket of a candidate.
    fn enter(&mut self, bytes: &[u8]) -> Found {
        let object = bytes.get(self.pos) == Some(&b'{');
        self.pos += 1;
        self.retry = self.pos;
        self.depth += 1;
        match self.depth > self.max_depth {
            // Not prose: the parser reports the error.
            true => ControlFlow::Break(Some(self.start)),
            false => self.go_on(if object { Phase::InObject } else { Phase::InArray }),
        }
    }

    /// Decides by the next byte that is not white space.
    fn look_on(&mut self, text: &str) -> Found {
        let bytes = text.as_bytes();
        self.pos = scan::space(bytes, self.pos);
        let Some(&byte) = bytes.get(self.pos) else { return ControlFlow::Break(None) };
        match (self.phase, byte) {
            (Phase::InArray, b'[' | b'{') => self.enter(bytes),
            (Phase::InObject, b'"' | b'\'') => {
                self.pos += 1;
                self.retry = self.pos;
                self.go_on(Phase::Key(byte))
            }
            (Phase::AfterKey, b':') => ControlFlow::Break(Some(self.start)),
            (Phase::InArray, b'/') => self.look_at_slash(text),
            (_, b'/') | (Phase::InObject | Phase::AfterKey, b'#') => self.enter_comment(bytes),
            (Phase::InObject, _) => self.look_wider(text, opening::member, self.pos),
            (Phase::AfterKey, _) => self.look_wider(text, opening::separator, self.retry),
            _ => self.dismiss(self.pos),
        }
    }

    /// At a slash after a bracket: a comment, or a tag such as `[/THINK]`.
    fn look_at_slash(&mut self, text: &str) -> Found {
        let bracket = self.pos - 1;
        match reasoning::closing_tag_at(text.get(bracket..).unwrap_or_default()) {
            Tag::Found(length, ()) => self.end_reasoning(bracket + length),
            Tag::Cut => ControlFlow::Break(None),
            Tag::None => self.enter_comment(text.as_bytes()),
        }
    }

    /// Decides by more than the next byte; prose continues at `retry`.
    fn look_wider(&mut self, text: &str, look: fn(&str) -> Look, retry: usize) -> Found {
        match look(text.get(self.pos..).unwrap_or_default()) {
            Look::Yes(length) => {
                self.pos += length;
                self.is_wider = true;
                ControlFlow::Break(Some(self.start))
            }
            Look::More => ControlFlow::Break(None),
            Look::No => self.dismiss(retry),
        }
    }

    fn read_key(&mut self, bytes: &[u8], quote: u8) -> Found {
        let stop = match quote {
            b'"' => string_run::<b'"'>(bytes, self.pos),
            _ => string_run::<b'\''>(bytes, self.pos),
        };
        self.pos = stop;
        match bytes.get(stop) {
            None => ControlFlow::Break(None),
            // Its second byte may still be missing.
            Some(b'\\') => {
                self.pos += 2;
                ControlFlow::Continue(())
            }
            Some(&byte) if byte == quote => {
                self.pos += 1;
                self.go_on(Phase::AfterKey)
            }
            // A line break or the like, which the parser reads in strings.
            _ => {
                self.pos += 1;
                ControlFlow::Continue(())
            }
        }
    }

    fn enter_comment(&mut self, bytes: &[u8]) -> Found {
        let back = match self.phase {
            Phase::InArray => Back::InArray,
            Phase::InObject => Back::InObject,
            _ => Back::AfterKey,
        };
        let (block, length) = match (bytes.get(self.pos), bytes.get(self.pos + 1)) {
            (Some(b'#'), _) => (false, 1),
            (_, None) => return ControlFlow::Break(None),
            (_, Some(b'/')) => (false, 2),
            (_, Some(b'*')) => (true, 2),
            _ => return self.dismiss(self.retry),
        };
        self.pos += length;
        self.go_on(Phase::Comment { block, back })
    }

    fn skip_comment(&mut self, text: &str, block: bool, back: Back) -> Found {
        let end = if block { "*/" } else { "\n" };
        let found = text.get(self.pos..).and_then(|rest| rest.find(end));
        self.pos = match found {
            Some(length) => self.pos + length + end.len(),
            None => text.len() - usize::from(block && text.len() > self.pos && text.ends_with('*')),
        };
        // Comments are not examined again.
        self.retry = self.pos;
        match (found, back) {
            (None, _) => ControlFlow::Break(None),
            (_, Back::InArray) => self.go_on(Phase::InArray),
            (_, Back::InObject) => self.go_on(Phase::InObject),
            (_, Back::AfterKey) => self.go_on(Phase::AfterKey),
        }
    }

    fn go_on(&mut self, phase: Phase) -> Found {
        self.phase = phase;
        ControlFlow::Continue(())
    }

    /// The candidate was prose.
    fn dismiss(&mut self, pos: usize) -> Found {
        self.pos = pos;
        self.go_on(Phase::Prose)
    }
}
