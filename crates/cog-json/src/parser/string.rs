//! Decoding strings as they arrive.

mod escape;

use crate::error::SyntaxErrorKind;
use crate::event::EventKind;
use crate::parser::lenient::LedgerTarget;
use crate::parser::machine::{Machine, Step, Token};
use crate::parser::sink::Sink;
use crate::parser::tolerance::Tolerance;
use crate::scan::string_run;
use crate::tape::{Entry, Tag};
use crate::write::ToJson;

use self::escape::Escape;

/// A string that is incomplete, or has escapes.
pub(super) struct StringToken {
    /// Its entry so far; already on the tape if it is a value.
    entry: Entry,
    /// Its index on the tape; none for a key.
    index: Option<u32>,
    /// The number of its bytes that were emitted.
    emitted: usize,
    began: bool,
    quote: u8,
    /// The number of control characters without an escape, and the length of their escapes.
    raw: usize,
    raw_escaped: usize,
}

impl StringToken {
    /// Returns a string whose first byte after the quote is at `start`.
    fn new(start: usize, quote: u8) -> Self {
        let entry = Entry::open(Tag::String, start);
        StringToken { entry, index: None, emitted: 0, began: false, quote, raw: 0, raw_escaped: 0 }
    }
}

impl Machine {
    /// At the opening quote of a value.
    #[inline(always)]
    pub(super) fn string_value<S: Sink>(&mut self, quote: u8, sink: &mut S) -> Step {
        if let Some(entry) = self.complete_string(quote) {
            let index = self.begin(entry, sink)?;
            self.emit(index, EventKind::Text { delta: self.tape.string(entry), first: true }, sink);
            self.complete(index, sink);
            return Ok(true);
        }
        self.pos += 1;
        let mut token = StringToken::new(self.pos, quote);
        token.index = Some(self.begin(token.entry, sink)?);
        self.go_on_string(token, sink)
    }

    /// At the opening quote of a key.
    #[inline(always)]
    pub(super) fn string_key<S: Sink>(&mut self, quote: u8, sink: &mut S) -> Step {
        if let Some(entry) = self.complete_string(quote) {
            return self.add_key::<S>(entry);
        }
        self.pos += 1;
        self.go_on_string(StringToken::new(self.pos, quote), sink)
    }

    /// The common case: the text contains the string from quote to quote, without escapes.
    #[inline]
    fn complete_string(&mut self, quote: u8) -> Option<Entry> {
        if quote != b'"' {
            return None;
        }
        let bytes = self.tape.text.as_bytes();
        let start = self.pos + 1;
        let end = string_run::<b'"'>(bytes, start);
        if bytes.get(end) != Some(&b'"') {
            return None;
        }
        self.pos = end + 1;
        Some(Entry::scalar(Tag::String, start, end - start))
    }

    pub(super) fn go_on_string<S: Sink>(&mut self, mut token: StringToken, sink: &mut S) -> Step {
        loop {
            let bytes = self.tape.text.as_bytes();
            let stop = match token.quote {
                b'"' => string_run::<b'"'>(bytes, self.pos),
                _ => string_run::<b'\''>(bytes, self.pos),
            };
            let byte = bytes.get(stop).copied();
            self.add_run(&mut token.entry, stop);
            match byte {
                None => return self.pause_string(token, sink),
                Some(quote) if quote == token.quote => return self.end_string(token, sink),
                Some(b'\\') => match escape::read(self.tape.text.as_bytes(), stop, token.quote) {
                    Escape::Unfinished => return self.pause_string(token, sink),
                    Escape::Bad(kind) => {
                        self.show_string(&mut token, sink);
                        return Err((kind, stop));
                    }
                    Escape::Char(char, length) => self.add_char(&mut token.entry, char, length),
                },
                Some(control) if self.tolerant => {
                    self.add_run(&mut token.entry, stop + 1);
                    token.raw += 1;
                    token.raw_escaped += escape::length(control);
                }
                Some(_) => {
                    self.show_string(&mut token, sink);
                    return Err((SyntaxErrorKind::ControlCharacter, stop));
                }
            }
        }
    }

    /// Adds the plain text up to `stop` to the string.
    fn add_run(&mut self, entry: &mut Entry, stop: usize) {
        if stop == self.pos {
            return;
        }
        let tape = &mut self.tape;
        if entry.is_decoded() {
            tape.decoded.push_str(tape.text.get(self.pos..stop).unwrap_or_default());
        }
        entry.set_len(entry.count() + stop - self.pos);
        self.pos = stop;
    }

    fn add_char(&mut self, entry: &mut Entry, char: char, length: usize) {
        let tape = &mut self.tape;
        if !entry.is_decoded() {
            let place = tape.decoded.len();
            tape.decoded.push_str(tape.text.get(entry.string_range()).unwrap_or_default());
            entry.set_decoded(place);
        }
        tape.decoded.push(char);
        entry.set_len(entry.count() + char.len_utf8());
        self.pos += length;
    }

    fn end_string<S: Sink>(&mut self, mut token: StringToken, sink: &mut S) -> Step {
        self.pos += 1;
        let end = self.pos;
        let Some(index) = token.index else {
            self.add_key::<S>(token.entry)?;
            self.note_string(&token, end);
            return Ok(true);
        };
        token.entry.set_complete();
        self.note_string(&token, end);
        self.show_string(&mut token, sink);
        if !token.began {
            self.emit(index, EventKind::Text { delta: "", first: true }, sink);
        }
        self.complete(index, sink);
        Ok(true)
    }

    /// Records the deviations of a complete string whose closing quote is before `end`.
    fn note_string(&mut self, token: &StringToken, end: usize) {
        if token.quote == b'\'' {
            let before = end + 1 - token.entry.start();
            let after = self.tape.string(token.entry).to_json().len();
            self.note(Tolerance::SingleQuotes, LedgerTarget::Value, before, after);
        }
        if token.raw > 0 {
            self.note(Tolerance::RawNewline, LedgerTarget::Value, token.raw, token.raw_escaped);
        }
    }

    fn pause_string<S: Sink>(&mut self, mut token: StringToken, sink: &mut S) -> Step {
        self.show_string(&mut token, sink);
        self.token = Token::String(token);
        Ok(false)
    }

    /// Updates the draft and emits the new text.
    fn show_string<S: Sink>(&mut self, token: &mut StringToken, sink: &mut S) {
        let Some(index) = token.index else { return };
        self.tape.update(index, |entry| *entry = token.entry);
        if S::LIVE {
            let delta = self.tape.string(token.entry).get(token.emitted..).unwrap_or_default();
            if !delta.is_empty() {
                self.emit(index, EventKind::Text { delta, first: !token.began }, sink);
                token.emitted += delta.len();
                token.began = true;
            }
        }
    }
}
