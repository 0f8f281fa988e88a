//! The grammar of JSON as a state machine over tokens.
//!
//! The steps for common keys and strings are always inlined: the calls between them would take a fifth of the time of
//! parsing a complete text (`benches/ratios.rs`), and the compiler does not inline them by itself.

use crate::error::SyntaxErrorKind;
use crate::event::Limits;
use crate::node::Node;
use crate::parser::ErrorAt;
use crate::parser::Sink;
use crate::parser::build::Frame;
use crate::parser::scalar::NumberToken;
use crate::parser::scalar::StringToken;
use crate::parser::tolerance::{CommentToken, Ledger};
use crate::path::Path;
use crate::scan;
use crate::tape::{Entry, Tag, Tape};

/// The state between two chunks.
pub(super) struct Machine {
    pub(super) tape: Tape,
    /// The first byte of the text that was not parsed.
    pub(super) pos: usize,
    /// The grammar at `pos`.
    pub(super) expect: Expect,
    /// The incomplete token at `pos`.
    pub(super) token: Token,
    pub(super) path: Path,
    pub(super) frames: Vec<Frame>,
    pub(super) limits: Limits,
    /// Whether to accept the deviations of rulings R24 and R75.
    pub(super) tolerant: bool,
    /// The key whose value has the path of the root if it is the first key of the root.
    pub(super) wrapper: Option<&'static str>,
    pub(super) ledger: Ledger,
}

/// The grammar of the next token.
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

/// An incomplete token at the end of the text so far.
pub(super) enum Token {
    None,
    String(StringToken),
    Number(NumberToken),
    Comment(CommentToken),
    /// A bare key that begins at this offset.
    BareKey(usize),
}

/// Whether to continue; false when the text ends inside a token.
pub(super) type Step = Result<bool, ErrorAt>;

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
            wrapper: None,
            ledger: Ledger::default(),
        }
    }

    /// Restarts at another offset of the text.
    pub(super) fn restart(&mut self, pos: usize) {
        // The text stays: offsets in errors and entries count from the start of the reply, and a copy for each restart would
        // make a reply with many drafts quadratic.
        let text = std::mem::take(&mut self.tape.text);
        let wrapper = self.wrapper;
        *self = Machine { pos, wrapper, ..Machine::new(self.limits, self.tolerant) };
        self.tape.text = text;
    }

    /// Returns a machine for a part of the text, which it copies. Offsets count from `from`.
    ///
    /// What follows a decision must not change it, and cutting off the rest of the text instead would move it once for each
    /// draft of a long reply.
    pub(super) fn excerpt(&self, from: usize, to: usize) -> Self {
        let mut excerpt = Machine::new(self.limits, self.tolerant);
        excerpt.wrapper = self.wrapper;
        excerpt.tape.text.push_str(self.tape.text.get(from..to).unwrap_or_default());
        excerpt
    }

    /// Drops the text and what was parsed of it. Up to `retained` bytes of memory are reused for the next text.
    pub(super) fn clear(&mut self, retained: usize) {
        self.tape.clear(retained);
        self.pos = 0;
        self.expect = Expect::Value;
        self.token = Token::None;
        self.path = Path::root();
        self.frames.clear();
        self.ledger = Ledger::default();
    }

    /// Reserves memory for the tape of `text`.
    pub(super) fn reserve(&mut self, text: &[u8]) {
        self.tape.text.reserve(text.len());
        let entries = expected_entries(text).min(self.limits.nodes as usize);
        self.tape.entries.reserve(entries);
    }

    pub(super) fn root(&self) -> Option<Node<'_>> {
        (self.tape.len() > 0).then_some(Node { tape: &self.tape, index: 0 })
    }

    /// Returns the value of the wrapper if it is an object and the only member of `root`, otherwise `root`.
    pub(super) fn unwrapped<'a>(&self, root: Node<'a>) -> Node<'a> {
        // A string or array in the wrapper is no envelope: the document is checked and reported unchanged.
        let mut members = root.members();
        match (self.wrapper, members.next(), members.next()) {
            (Some(wrapper), Some((key, inner)), None) if key == wrapper && inner.is_object() => inner,
            _ => root,
        }
    }

    /// Whether the root is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.expect == Expect::End
    }

    /// Parses as far as the text goes.
    pub(super) fn run<S: Sink>(&mut self, sink: &mut S) -> Result<(), ErrorAt> {
        let read = self.read(sink);
        // The tape knows the children of open containers only between two chunks: writing each child down would slow all of
        // them.
        for frame in &self.frames {
            self.tape.update(frame.container, |entry| entry.set_len(frame.count as usize));
        }
        read
    }

    fn read<S: Sink>(&mut self, sink: &mut S) -> Result<(), ErrorAt> {
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

    /// Ends the text. Returns whether the root is complete.
    pub(super) fn finish<S: Sink>(&mut self, sink: &mut S) -> Step {
        // Nothing else shows that a number is complete: more digits could have followed.
        if self.frames.is_empty() {
            self.end_number(sink)?;
        }
        Ok(self.is_complete())
    }

    /// Continues with the incomplete token.
    fn resume<S: Sink>(&mut self, sink: &mut S) -> Step {
        match std::mem::replace(&mut self.token, Token::None) {
            Token::None => Ok(true),
            Token::String(token) => self.go_on_string(token, sink),
            Token::Number(token) => self.go_on_number(token, sink),
            Token::Comment(token) => self.go_on_comment(token),
            Token::BareKey(start) => self.go_on_bare_key::<S>(start),
        }
    }

    /// Returns the next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.tape.text.as_bytes();
        let byte = *bytes.get(self.pos)?;
        // Compact JSON has no white space here.
        if byte > b' ' {
            return Some(byte);
        }
        self.pos = scan::space(bytes, self.pos);
        bytes.get(self.pos).copied()
    }

    #[inline(always)]
    fn value<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        match byte {
            b'"' => self.string_value(sink),
            b'{' => self.open(Tag::Object, Expect::FirstKey, sink),
            b'[' => self.open(Tag::Array, Expect::FirstElement, sink),
            b'-' | b'0'..=b'9' => self.number(byte, sink),
            b't' => self.literal(byte, "true", Tag::True, sink),
            b'f' => self.literal(byte, "false", Tag::False, sink),
            b'n' => self.literal(byte, "null", Tag::Null, sink),
            b']' if self.expect == Expect::FirstElement => self.close(sink),
            _ => self.unexpected(byte, sink),
        }
    }

    #[inline(always)]
    fn key<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Step {
        match byte {
            b'"' => self.string_key(sink),
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
            Expect::Element if byte == b']' => SyntaxErrorKind::TrailingComma,
            Expect::Key if byte == b'}' => SyntaxErrorKind::TrailingComma,
            // Decided by one byte, so that the error does not depend on how the text was split.
            _ if !self.tolerant && matches!(byte, b'/' | b'#') => SyntaxErrorKind::Comment,
            Expect::Value if self.pos == 0 && self.tape.text.starts_with('\u{feff}') => {
                SyntaxErrorKind::ByteOrderMark
            }
            Expect::Value | Expect::FirstElement | Expect::Element => SyntaxErrorKind::ExpectedValue,
            Expect::FirstKey | Expect::Key => SyntaxErrorKind::ExpectedKey,
            Expect::Colon => SyntaxErrorKind::ExpectedColon,
            Expect::Comma if self.in_object() => SyntaxErrorKind::ExpectedCommaOrBrace,
            Expect::Comma => SyntaxErrorKind::ExpectedCommaOrBracket,
            Expect::End => SyntaxErrorKind::TrailingText,
        };
        Err((kind, self.pos))
    }

    fn in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.object)
    }

    fn literal<S: Sink>(&mut self, first: u8, word: &str, tag: Tag, sink: &mut S) -> Step {
        let start = self.pos;
        let rest = self.tape.text.get(start..).unwrap_or_default();
        if rest.starts_with(word) {
            self.pos += word.len();
            return self.scalar(Entry::scalar(tag, start, word.len()), sink);
        }
        // While the text ends inside it, it is read again from its start.
        if word.starts_with(rest) { Ok(false) } else { self.unexpected(first, sink) }
    }
}

/// The bytes of text for an entry of the tape, where nothing else is known.
const USUAL_BYTES: usize = 12;
/// The bytes of each place at which a long text is sampled.
const SAMPLE: usize = 1024;

/// Returns how many entries a document probably has. A long one is sampled at three places, and the one with the fewest commas
/// and colons counts: an array of short numbers has six times the usual entries, and growing would take twice their memory.
fn expected_entries(text: &[u8]) -> usize {
    let samples = (1..4).filter_map(|quarter| {
        let start = text.len() / 4 * quarter;
        let sample = text.get(start..start + SAMPLE)?;
        Some(sample.iter().filter(|byte| matches!(byte, b',' | b':')).count())
    });
    let sampled = if text.len() > 8 * SAMPLE { samples.min() } else { None };
    // A few more than in the sample, because growing copies the tape.
    let dense = sampled.map_or(0, |count| (count + count / 32) * text.len().div_ceil(SAMPLE));
    dense.max(text.len() / USUAL_BYTES) + 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::Parser;

    /// Returns the number of entries of a text, and for how many its tape has memory.
    fn entries(text: &str) -> (usize, usize) {
        let mut parser = Parser::strict(Limits::default());
        parser.machine.reserve(text.as_bytes());
        parser.push(text.as_bytes(), &mut |_| ()).unwrap();
        let entries = &parser.machine.tape.entries;
        (entries.len(), entries.capacity())
    }

    #[test]
    fn tape_of_short_numbers_does_not_grow() {
        for number in ["1", "12", "-3456", "7.25, 1000"] {
            let (used, reserved) = entries(&format!("[{number}{}]", format!(", {number}").repeat(20_000)));
            assert!(used > 20_000 && reserved < used + used / 16, "{number}: {reserved} for {used}");
        }
    }

    #[test]
    fn long_string_after_short_numbers_has_the_usual_memory() {
        let text = format!("[{}\"{}\"]", "1,".repeat(50_000), "x".repeat(200_000));
        let reserved = expected_entries(text.as_bytes());
        assert_eq!(reserved, text.len() / USUAL_BYTES + 4);
        assert_eq!(expected_entries(&[b','; 600]), 54);
        let long = 8 * SAMPLE;
        assert_eq!(expected_entries(&vec![b','; long]), long / USUAL_BYTES + 4);
        assert!(expected_entries(&vec![b','; long + 1]) > long);
    }
}
