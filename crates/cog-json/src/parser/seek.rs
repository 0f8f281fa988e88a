//! Finding the document in a reply that contains more than JSON.
//!
//! Prose has brackets too: `{name}`, `[1]`, `{"a"}`. A bracket starts the document only if a key and a colon
//! follow it, possibly after more opening brackets. No event is emitted before. Text that opens like an object in a form
//! that the parser does not read is found too ([`opening`]): it is not prose. The text of a false start is read again as
//! prose, but never twice for one kind of quote, so that the search is linear: a key ends at the next quote of its kind,
//! and a false start inside the key would need that quote.

use std::ops::ControlFlow;

use crate::parser::call::{self, Arguments};
use crate::parser::drafts::{Draft, Drafts, Step, first_length};
use crate::parser::markup;
use crate::parser::opening::{self, Look};
use crate::scan::{self, string_run};

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
    /// Where the search began.
    origin: usize,
    /// The start of the reply, after reasoning.
    body: usize,
    /// The start of the reply if a closing tag in its text ends reasoning too.
    tail: usize,
    /// Whether a lone closing tag ends the search.
    stops_at_tag: bool,
    /// The tags and markers so far.
    drafts: Drafts,
    arguments: Arguments,
    /// Whether text with brackets came before a draft, so that the document may be a part of something.
    is_part: bool,
    /// Whether the text has ended.
    is_end: bool,
    /// Whether what was found has another form than JSON.
    is_wider: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Prose,
    /// Inside a tag, a channel or the markers of a tool call.
    Draft,
    /// Inside the arguments of a tool call that has no markers.
    Arguments,
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
type SeekStep = ControlFlow<Option<usize>>;

impl Seeker {
    /// Searches from the start of a reply.
    pub(super) fn new(max_depth: usize) -> Self {
        Seeker {
            pos: 0,
            phase: Phase::Prose,
            start: 0,
            retry: 0,
            depth: 0,
            max_depth,
            origin: 0,
            body: 0,
            tail: 0,
            stops_at_tag: false,
            drafts: Drafts::default(),
            arguments: Arguments::default(),
            is_part: false,
            is_end: false,
            is_wider: false,
        }
    }

    /// Searches another object after a document, up to the first closing tag. `drafts` are the marks before the document.
    pub(super) fn after(pos: usize, max_depth: usize, drafts: &Drafts) -> Self {
        Seeker { pos, stops_at_tag: true, drafts: drafts.after_document(), ..Self::new(max_depth) }
    }

    /// Searches after the closing tag of reasoning. `drafts` are the marks before it.
    pub(super) fn after_reasoning(pos: usize, max_depth: usize, drafts: &Drafts) -> Self {
        Seeker {
            pos,
            origin: pos,
            body: pos,
            tail: pos,
            drafts: drafts.after_draft(),
            ..Self::new(max_depth)
        }
    }

    /// Returns the start of the document, if the text shows it.
    pub(super) fn seek(&mut self, text: &str) -> Option<usize> {
        loop {
            match self.step(text) {
                ControlFlow::Break(Some(start)) if self.is_call(text, start) => self.skip_call(text, start),
                ControlFlow::Break(found) => return found,
                ControlFlow::Continue(()) => {}
            }
        }
    }

    /// Searches on at the end of the text, where an incomplete tag is prose.
    pub(super) fn seek_without_more(&mut self, text: &str) -> Option<usize> {
        self.is_end = true;
        self.seek(text)
    }

    /// Searches again at the end of the text, where an incomplete candidate is prose too.
    pub(super) fn seek_at_end(&mut self, text: &str) -> Option<usize> {
        let mut found = self.seek_without_more(text);
        while found.is_none() && self.is_candidate() {
            // `retry` only grows, and no kind of quote is searched twice from the same place: this stays linear.
            self.pos = self.retry;
            self.phase = Phase::Prose;
            found = self.seek(text);
        }
        found
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

    /// Returns where the search began.
    pub(super) fn origin(&self) -> usize {
        self.origin
    }

    /// Returns the start of the reply, after reasoning.
    pub(super) fn body(&self) -> usize {
        self.body
    }

    /// Returns the start of the reply if a closing tag in its text ends reasoning too.
    pub(super) fn tail(&self) -> usize {
        self.tail
    }

    /// Whether the text ends inside a draft.
    pub(super) fn is_draft(&self) -> bool {
        matches!(self.phase, Phase::Draft | Phase::Arguments)
    }

    /// Returns the marks so far.
    pub(super) fn drafts(&self) -> &Drafts {
        &self.drafts
    }

    /// Returns what the drafts so far are.
    pub(super) fn draft(&self) -> Option<Draft> {
        self.drafts.kind
    }

    /// Whether the document may be a part of something with a draft inside it.
    pub(super) fn is_part(&self) -> bool {
        self.is_part
    }

    fn is_candidate(&self) -> bool {
        !matches!(self.phase, Phase::Prose | Phase::Draft | Phase::Arguments)
    }

    fn step(&mut self, text: &str) -> SeekStep {
        let bytes = text.as_bytes();
        match self.phase {
            Phase::Draft => self.skip_draft(text),
            Phase::Arguments => self.skip_arguments(bytes),
            Phase::Prose => self.skip_prose(text),
            Phase::InArray | Phase::InObject | Phase::AfterKey => self.look_on(text),
            Phase::Key(quote) => self.read_key(bytes, quote),
            Phase::Comment { block, back } => self.skip_comment(text, block, back),
        }
    }

    fn skip_draft(&mut self, text: &str) -> SeekStep {
        match self.drafts.end(text, self.pos, self.is_end) {
            Ok(end) => self.end_draft(end),
            Err(pos) => {
                self.pos = pos;
                ControlFlow::Break(None)
            }
        }
    }

    /// Whether the object that was found is the arguments of a tool call that has no markers.
    fn is_call(&self, text: &str, start: usize) -> bool {
        let has_called = self.drafts.kind == Some(Draft::ToolCall);
        call::precedes(text.get(..start).unwrap_or_default(), has_called)
    }

    /// Continues at the object that was found, which is a draft.
    fn skip_call(&mut self, text: &str, start: usize) {
        self.note_part(text, start);
        self.drafts.kind = Some(Draft::ToolCall);
        self.arguments = Arguments::default();
        self.is_wider = false;
        self.pos = start;
        self.phase = Phase::Arguments;
    }

    fn skip_arguments(&mut self, bytes: &[u8]) -> SeekStep {
        match self.arguments.end(bytes, self.pos) {
            Some(end) => self.end_draft(end),
            None => {
                self.pos = bytes.len();
                ControlFlow::Break(None)
            }
        }
    }

    /// Notes the brackets before a draft. After a document `body` does not move, and the same text would be searched for each
    /// draft.
    fn note_part(&mut self, text: &str, draft: usize) {
        if !self.stops_at_tag {
            let before = text.get(self.body..draft).unwrap_or_default();
            self.is_part |= before.contains(['[', '{']);
        }
    }

    fn end_draft(&mut self, end: usize) -> SeekStep {
        // After a document, a draft changes nothing before it.
        if !self.stops_at_tag {
            self.body = end;
            self.tail = end;
        }
        self.dismiss(end)
    }

    fn skip_prose(&mut self, text: &str) -> SeekStep {
        let bytes = text.as_bytes();
        let rest = bytes.get(self.pos..).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == b'{' || markup::may_begin(byte)) else {
            self.pos = bytes.len();
            return ControlFlow::Break(None);
        };
        self.pos += length;
        match bytes.get(self.pos) {
            Some(b'{') => self.begin(bytes),
            _ => self.pass_mark(text),
        }
    }

    /// Where a tag or a marker may be.
    fn pass_mark(&mut self, text: &str) -> SeekStep {
        match self.drafts.step(text, self.pos, self.is_end) {
            Step::Opened(end) => {
                self.note_part(text, self.pos);
                self.pos = end;
                self.go_on(Phase::Draft)
            }
            Step::Lone(end) => self.end_reasoning(end),
            Step::Closed(end) => self.end_draft(end),
            Step::Skip(end) => self.dismiss(end),
            Step::Cut => ControlFlow::Break(None),
            Step::Text if text.as_bytes().get(self.pos) == Some(&b'[') => self.begin(text.as_bytes()),
            Step::Text => self.dismiss(self.pos + first_length(text, self.pos)),
        }
    }

    /// At the first bracket of a candidate.
    fn begin(&mut self, bytes: &[u8]) -> SeekStep {
        self.start = self.pos;
        self.depth = 0;
        self.enter(bytes)
    }

    /// Continues after the closing tag of reasoning that has no opening tag. Two starts of the reply are kept: `body` moves only
    /// after drafts whose both marks were seen, since a lone closing tag may as well be in a string of the answer.
    fn end_reasoning(&mut self, end: usize) -> SeekStep {
        self.pos = end;
        self.tail = end;
        self.phase = Phase::Prose;
        if self.stops_at_tag { ControlFlow::Break(None) } else { ControlFlow::Continue(()) }
    }

    /// At an opening bracket of a candidate.
    fn enter(&mut self, bytes: &[u8]) -> SeekStep {
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
    fn look_on(&mut self, text: &str) -> SeekStep {
        let bytes = text.as_bytes();
        self.pos = scan::space(bytes, self.pos);
        let Some(&byte) = bytes.get(self.pos) else { return ControlFlow::Break(None) };
        match (self.phase, byte) {
            (Phase::InArray, b'[') => self.enter_array(text),
            (Phase::InArray, b'{') => self.enter(bytes),
            (Phase::InObject, b'"' | b'\'') => {
                self.pos += 1;
                self.retry = self.pos;
                self.go_on(Phase::Key(byte))
            }
            (Phase::AfterKey, b':') => ControlFlow::Break(Some(self.start)),
            // In an array, `#` begins no comment: `[#12]` is prose.
            (_, b'/') | (Phase::InObject | Phase::AfterKey, b'#') => self.enter_comment(bytes),
            (Phase::InObject, _) => self.look_wider(text, opening::member, self.pos),
            (Phase::AfterKey, _) => self.look_wider(text, opening::separator, self.retry),
            _ => self.dismiss(self.pos),
        }
    }

    /// At a bracket inside an array, which may be a marker such as `[ARGS]` as well.
    fn enter_array(&mut self, text: &str) -> SeekStep {
        match markup::read(text, self.pos, self.is_end) {
            markup::Look::Mark(_) => self.dismiss(self.pos),
            markup::Look::Cut => ControlFlow::Break(None),
            markup::Look::None => self.enter(text.as_bytes()),
        }
    }

    /// Decides by more than the next byte; prose continues at `retry`.
    fn look_wider(&mut self, text: &str, look: fn(&str) -> Look, retry: usize) -> SeekStep {
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

    fn read_key(&mut self, bytes: &[u8], quote: u8) -> SeekStep {
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
            // A raw control character, which the parser tolerates inside strings.
            _ => {
                self.pos += 1;
                ControlFlow::Continue(())
            }
        }
    }

    fn enter_comment(&mut self, bytes: &[u8]) -> SeekStep {
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

    fn skip_comment(&mut self, text: &str, block: bool, back: Back) -> SeekStep {
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

    fn go_on(&mut self, phase: Phase) -> SeekStep {
        self.phase = phase;
        ControlFlow::Continue(())
    }

    /// The candidate was prose.
    fn dismiss(&mut self, pos: usize) -> SeekStep {
        self.pos = pos;
        self.go_on(Phase::Prose)
    }
}
