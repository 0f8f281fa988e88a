//! The grammar of JSON, one token after the other.

use crate::error::SyntaxKind;
use crate::event::{Event, EventKind};
use crate::limits::Limits;
use crate::node::Node;
use crate::parser::Fault;
use crate::parser::lenient::{CommentToken, Place};
use crate::parser::number::NumberToken;
use crate::parser::sink::Sink;
use crate::parser::string::StringToken;
use crate::parser::tolerance::{Ledger, Tolerance};
use crate::path::Path;
use crate::scan;
use crate::tape::{Entry, Tag, Tape, fingerprint};
use crate::write::ToJson;

/// Everything that is known between two pieces.
pub(super) struct Machine {
    pub(super) tape: Tape,
    /// The first byte of the text that was not understood yet.
    pub(super) pos: usize,
    /// What may come there.
    pub(super) expect: Expect,
    /// What was begun there.
    pub(super) token: Token,
    pub(super) path: Path,
    pub(super) frames: Vec<Frame>,
    limits: Limits,
    /// Whether to read what supplement R24 lists.
    pub(super) tolerant: bool,
    pub(super) ledger: Ledger,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// The root, or the value of a member.
    Value,
    /// After `[`.
    FirstElement,
    /// After `,` in an array.
    Element,
    /// After `{`.
    FirstKey,
    /// After `,` in an object.
    Key,
    Colon,
    Comma,
    /// Nothing: the root is complete.
    End,
}

/// A token that the text so far ends in.
pub(super) enum Token {
    None,
    String(StringToken),
    Number(NumberToken),
    Comment(CommentToken),
}

/// An open container.
pub(super) struct Frame {
    pub(super) container: u32,
    pub(super) object: bool,
    /// Children so far; brought to the tape at the end of each piece.
    pub(super) count: u32,
    /// Keys so far, those that came again counted each time.
    keys: u32,
    /// The key entry of the member at hand.
    pub(super) key: u32,
    /// An earlier key entry with the same key, or 0, which is never a key.
    earlier: u32,
    /// One bit for each fingerprint: a key whose bit is not set is new.
    seen: u64,
}

/// Whether to go on: not when the text ends in a token.
pub(super) type Step = Result<bool, Fault>;

impl Machine {
    pub(super) fn new(limits: Limits, tolerant: bool) -> Self {
        Machine {
            tape: Tape::default(),
            pos: 0,
            expect: Expect::Value,
            token: Token::None,
            path: Path::root(),
            frames: Vec::new(),
            limits,
            tolerant,
            ledger: Ledger::default(),
        }
    }

    /// Starts over at another place of the same text.
    pub(super) fn restart(&mut self, pos: usize) {
        let text = std::mem::take(&mut self.tape.text);
        *self = Machine { pos, ..Machine::new(self.limits, self.tolerant) };
        self.tape.text = text;
    }

    /// Makes room for a text of this many bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.tape.text.reserve(bytes);
        self.tape.entries.reserve(bytes / 12 + 4);
    }

    pub(super) fn root(&self) -> Option<Node<'_>> {
        (self.tape.len() > 0).then_some(Node { tape: &self.tape, index: 0 })
    }

    /// Whether the root is complete.
    pub(super) fn is_over(&self) -> bool {
        self.expect == Expect::End
    }

    /// Reads as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, sink: &mut S) -> Result<(), Fault> {
        let read = self.read(sink);
        for frame in &self.frames {
            self.tape.update(frame.container, |entry| entry.set_len(frame.count as usize));
        }
        read
    }

    fn read<S: Sink>(&mut self, sink: &mut S) -> Result<(), Fault> {
        let mut goes_on = self.resume(sink)?;
        while goes_on {
            let Some(byte) = self.peek() else { break };
            goes_on = match self.expect {
                Expect::Value | Expect::FirstElement | Expect::Element => self.value(byte, sink)?,
                Expect::FirstKey | Expect::Key => self.key(byte, sink)?,
                Expect::Colon => self.colon(byte, sink)?,
                Expect::Comma => self.comma(byte, sink)?,
                Expect::End => self.unexpected(byte, sink)?,
            };
        }
        Ok(())
    }

    /// The text is over. Whether the root is complete.
    pub(super) fn finish<S: Sink>(&mut self, sink: &mut S) -> Step {
        if self.frames.is_empty() {
            self.end_number(sink)?;
        }
        Ok(self.is_over())
    }

    /// Goes on with the token that the text ended in.
    fn resume<S: Sink>(&mut self, sink: &mut S) -> Step {
        match std::mem::replace(&mut self.token, Token::None) {
            Token::None => Ok(true),
            Token::String(token) => self.go_on_string(token, sink),
            Token::Number(token) => self.go_on_number(token, sink),
            Token::Comment(token) => self.go_on_comment(token),
        }
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.tape.text.as_bytes();
        let byte = *bytes.get(self.pos)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.pos = scan::space(bytes, self.pos);
        bytes.get(self.pos).copied()
    }

    fn value<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        match byte {
            b'"' => self.string_value(byte, sink),
            b'{' => self.open(Tag::Object, Expect::FirstKey, sink),
            b'[' => self.open(Tag::Array, Expect::FirstElement, sink),
            b'-' | b'0'..=b'9' => self.number(byte, sink),
            b't' => self.literal("true", Tag::True, sink),
            b'f' => self.literal("false", Tag::False, sink),
            b'n' => self.literal("null", Tag::Null, sink),
            b']' if self.expect == Expect::FirstElement => self.close(sink),
            _ => self.unexpected(byte, sink),
        }
    }

    fn key<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        match byte {
            b'"' => self.string_key(byte, sink),
            b'}' if self.expect == Expect::FirstKey => self.close(sink),
            _ => self.unexpected(byte, sink),
        }
    }

    fn colon<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        if byte != b':' {
            return self.unexpected(byte, sink);
        }
        self.pos += 1;
        self.expect = Expect::Value;
        Ok(true)
    }

    fn comma<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        let object = self.in_object();
        match (byte, object) {
            (b',', _) => {
                self.pos += 1;
                self.expect = if object { Expect::Key } else { Expect::Element };
                Ok(true)
            }
            (b'}', true) | (b']', false) => self.close(sink),
            _ => self.unexpected(byte, sink),
        }
    }

    #[cold]
    fn unexpected<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        if let Some(step) = self.tolerate(byte, sink) {
            return step;
        }
        let kind = match self.expect {
            Expect::Element if byte == b']' => SyntaxKind::TrailingComma,
            Expect::Key if byte == b'}' => SyntaxKind::TrailingComma,
            Expect::Value if self.pos == 0 && self.tape.text.starts_with('\u{feff}') => {
                SyntaxKind::ByteOrderMark
            }
            Expect::Value | Expect::FirstElement | Expect::Element => SyntaxKind::ExpectedValue,
            Expect::FirstKey | Expect::Key => SyntaxKind::ExpectedKey,
            Expect::Colon => SyntaxKind::ExpectedColon,
            Expect::Comma if self.in_object() => SyntaxKind::ExpectedCommaOrBrace,
            Expect::Comma => SyntaxKind::ExpectedCommaOrBracket,
            Expect::End => SyntaxKind::TrailingText,
        };
        Err((kind, self.pos))
    }

    fn in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.object)
    }

    fn literal<S: Sink>(&mut self, word: &str, tag: Tag, sink: &mut S) -> Step {
        match self.word(word, tag)? {
            Some(entry) => self.scalar(entry, sink),
            None => Ok(false),
        }
    }

    /// Reads a word, or nothing yet if it may still become one: then it is read again from its start.
    pub(super) fn word(&mut self, word: &str, tag: Tag) -> Result<Option<Entry>, Fault> {
        let start = self.pos;
        let rest = self.tape.text.get(start..).unwrap_or_default();
        if rest.starts_with(word) {
            self.pos += word.len();
            return Ok(Some(Entry::scalar(tag, start, word.len())));
        }
        if word.starts_with(rest) { Ok(None) } else { Err((SyntaxKind::ExpectedValue, start)) }
    }

    fn open<S: Sink>(&mut self, tag: Tag, expect: Expect, sink: &mut S) -> Step {
        if self.frames.len() >= self.limits.depth as usize {
            return Err((SyntaxKind::TooDeep, self.pos));
        }
        let container = self.begin(Entry::open(tag, self.pos), sink)?;
        self.pos += 1;
        self.expect = expect;
        let object = tag == Tag::Object;
        self.frames.push(Frame { container, object, count: 0, keys: 0, key: 0, earlier: 0, seen: 0 });
        self.tell(container, EventKind::Open, sink);
        Ok(true)
    }

    pub(super) fn close<S: Sink>(&mut self, sink: &mut S) -> Step {
        self.pos += 1;
        if let Some(frame) = self.frames.pop() {
            let next = self.tape.len();
            self.tape.update(frame.container, |entry| {
                entry.set_len(frame.count as usize);
                entry.close(next);
            });
            self.complete(frame.container, sink);
        }
        Ok(true)
    }

    /// A value that is known as a whole.
    pub(super) fn scalar<S: Sink>(&mut self, entry: Entry, sink: &mut S) -> Step {
        let index = self.begin(entry, sink)?;
        self.complete(index, sink);
        Ok(true)
    }

    /// Puts a value on the tape, in its place in the container at hand.
    pub(super) fn begin<S: Sink>(&mut self, entry: Entry, sink: &mut S) -> Result<u32, Fault> {
        let index = self.tape.len();
        if index >= self.limits.nodes {
            return Err((SyntaxKind::TooMany, entry.start()));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.tape.entries.push(entry);
            return Ok(index);
        };
        let earlier = std::mem::take(&mut frame.earlier);
        if S::LIVE && !frame.object {
            self.path.push_index(frame.count as usize);
        }
        frame.count += u32::from(earlier == 0);
        if frame.object {
            frame.keys += 1;
            self.tape.add_member(frame.container, frame.key, earlier, frame.keys);
        }
        self.tape.entries.push(entry);
        if earlier != 0 {
            self.note_duplicate(earlier);
            self.tell(index, EventKind::Replaced, sink);
        }
        Ok(index)
    }

    #[cold]
    fn note_duplicate(&mut self, earlier: u32) {
        let replaced = Node { tape: &self.tape, index: earlier + 1 }.to_json().len();
        self.note(Tolerance::DuplicateKey, Place::Value, replaced, 0);
    }

    /// Goes on after a value.
    pub(super) fn complete<S: Sink>(&mut self, index: u32, sink: &mut S) {
        self.tell(index, EventKind::Complete, sink);
        let Some(frame) = self.frames.last() else {
            self.expect = Expect::End;
            return;
        };
        if S::LIVE {
            self.path.pop();
        }
        // A comma mostly follows at once.
        self.expect = match self.tape.text.as_bytes().get(self.pos) {
            Some(b',') if frame.object => Expect::Key,
            Some(b',') => Expect::Element,
            _ => Expect::Comma,
        };
        self.pos += usize::from(self.expect != Expect::Comma);
    }

    /// A key is complete: `entry` is its string.
    pub(super) fn add_key<S: Sink>(&mut self, entry: Entry) -> Step {
        let index = self.tape.len();
        if index >= self.limits.nodes {
            return Err((SyntaxKind::TooMany, entry.start()));
        }
        let key = self.tape.string(entry);
        let print = fingerprint(key.as_bytes());
        if let Some(frame) = self.frames.last_mut() {
            let bit = 1_u64 << (print % 64);
            if frame.seen & bit != 0 {
                frame.earlier = self.tape.find(frame.container, key, print).unwrap_or(0);
            }
            frame.seen |= bit;
            frame.key = index;
        }
        if S::LIVE {
            self.path.push_key(key);
        }
        self.tape.entries.push(entry.with_key(print));
        // A colon mostly follows at once.
        let colon = self.tape.text.as_bytes().get(self.pos) == Some(&b':');
        self.pos += usize::from(colon);
        self.expect = if colon { Expect::Value } else { Expect::Colon };
        Ok(true)
    }

    #[inline]
    pub(super) fn tell<S: Sink>(&self, index: u32, kind: EventKind<'_>, sink: &mut S) {
        if S::LIVE {
            sink.tell(Event { path: &self.path, node: Node { tape: &self.tape, index }, kind });
        }
    }
}
