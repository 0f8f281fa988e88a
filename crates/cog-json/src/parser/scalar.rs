//! Decoding strings and numbers as they arrive.

use crate::{
    error::SyntaxErrorKind,
    event::EventKind,
    parser::{
        Sink,
        machine::{Machine, Step, Token},
        tolerance::{LedgerTarget, Mark, Quote, Tolerance},
    },
    scan::{self, string_run},
    tape::{Entry, Tag},
    write::ToJson,
};

/// The bytes that are reserved for the decoded text of a string, at most as many as the text has left: short texts are decoded
/// without moving.
const DECODED: usize = 4 << 10;

/// A string that is incomplete, or has escapes.
pub(super) struct StringToken {
    /// Its entry so far; already on the tape if it is a value.
    entry: Entry,
    /// Its index on the tape; none for a key.
    index: Option<u32>,
    /// The number of its bytes that were emitted.
    emitted: usize,
    began: bool,
    quote: Quote,
    /// The number of escaped single quotes that JSON does not escape.
    escaped_quotes: usize,
    /// The number of control characters without an escape, and the length of their escapes.
    raw: usize,
    raw_escaped: usize,
}

impl StringToken {
    /// Returns a string whose first byte after the quote is at `start`.
    fn new(start: usize, quote: Quote) -> Self {
        let entry = Entry::open(Tag::String, start);
        StringToken {
            entry,
            index: None,
            emitted: 0,
            began: false,
            quote,
            escaped_quotes: 0,
            raw: 0,
            raw_escaped: 0,
        }
    }
}

impl Machine {
    /// At the double quote of a value.
    #[inline(always)]
    pub(super) fn string_value<S: Sink>(&mut self, sink: &mut S) -> Step {
        if let Some(entry) = self.complete_string() {
            let index = self.begin(entry, sink)?;
            self.emit(index, EventKind::Text { delta: self.tape.string(entry), first: true }, sink);
            self.complete(index, sink);
            return Ok(true);
        }
        self.begin_string(Quote::Double, sink)
    }

    /// At the double quote of a key.
    #[inline(always)]
    pub(super) fn string_key<S: Sink>(&mut self, sink: &mut S) -> Step {
        if let Some(entry) = self.complete_string() {
            return self.add_key::<S>(entry);
        }
        self.begin_key(Quote::Double, sink)
    }

    /// At the opening quote of a value that is read step by step.
    pub(super) fn begin_string<S: Sink>(&mut self, quote: Quote, sink: &mut S) -> Step {
        self.pos += quote.len();
        let mut token = StringToken::new(self.pos, quote);
        token.index = Some(self.begin(token.entry, sink)?);
        self.go_on_string(token, sink)
    }

    /// At the opening quote of a key that is read step by step.
    pub(super) fn begin_key<S: Sink>(&mut self, quote: Quote, sink: &mut S) -> Step {
        self.pos += quote.len();
        self.go_on_string(StringToken::new(self.pos, quote), sink)
    }

    /// The common case: the text contains the string from quote to quote, without escapes.
    #[inline]
    fn complete_string(&mut self) -> Option<Entry> {
        // A control character or an escape ends the run too: then the string is read again, step by step.
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
            let stop = token.quote.run(self.tape.text.as_bytes(), self.pos);
            self.add_run(&mut token.entry, stop);
            match self.tape.text.as_bytes().get(stop) {
                None => return self.pause_string(token, sink),
                Some(b'\\') => {
                    // An incomplete escape is read again from its backslash: it has at most twelve bytes.
                    if !self.add_escape(&mut token, sink)? {
                        return self.pause_string(token, sink);
                    }
                    continue;
                }
                Some(_) => {}
            }
            let rest = self.tape.text.get(stop..).unwrap_or_default();
            match token.quote.mark(rest) {
                Mark::Closing => return self.end_string(token, sink),
                Mark::Control if self.tolerant => {
                    token.raw += 1;
                    token.raw_escaped += length(rest.as_bytes().first().copied().unwrap_or_default());
                    self.add_run(&mut token.entry, stop + 1);
                }
                Mark::Control => {
                    return self.refuse_string(&mut token, SyntaxErrorKind::ControlCharacter, sink);
                }
                Mark::Nested => return self.refuse_string(&mut token, SyntaxErrorKind::NestedQuote, sink),
                Mark::Text(length) => self.add_run(&mut token.entry, stop + length),
            }
        }
    }

    /// Reads an escape. Returns whether the text contains all of it.
    fn add_escape<S: Sink>(&mut self, token: &mut StringToken, sink: &mut S) -> Step {
        match read(self.tape.text.as_bytes(), self.pos, self.tolerant) {
            Escape::Unfinished => return Ok(false),
            Escape::Bad(kind) => return self.refuse_string(token, kind, sink),
            Escape::Char(char, length) => {
                token.escaped_quotes += usize::from(char == '\'' && length == 2);
                self.add_char(&mut token.entry, char, length);
            }
        }
        Ok(true)
    }

    fn refuse_string<S: Sink>(
        &mut self,
        token: &mut StringToken,
        kind: SyntaxErrorKind,
        sink: &mut S,
    ) -> Step {
        // In smaller chunks, the text before the error would have been emitted already.
        self.show_string(token, sink);
        Err((kind, self.pos))
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
        // At the first escape, what came before it is copied: the text of a string is in one piece.
        if !entry.is_decoded() {
            let place = tape.decoded.len();
            tape.decoded.reserve((tape.text.len() - entry.string_range().start).min(DECODED));
            tape.decoded.push_str(tape.text.get(entry.string_range()).unwrap_or_default());
            entry.set_decoded(place);
        }
        tape.decoded.push(char);
        entry.set_len(entry.count() + char.len_utf8());
        self.pos += length;
    }

    fn end_string<S: Sink>(&mut self, mut token: StringToken, sink: &mut S) -> Step {
        // The closing quote may be another character, but typographic quotes all have three bytes.
        self.pos += token.quote.len();
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
        let rule = match token.quote {
            Quote::Double => None,
            Quote::Single => Some(Tolerance::SingleQuotes),
            Quote::Smart(_) => Some(Tolerance::SmartQuotes),
        };
        if let Some(rule) = rule {
            let before = end + token.quote.len() - token.entry.start();
            let after = self.tape.string(token.entry).to_json().len();
            self.note(rule, LedgerTarget::Value, before, after);
        }
        if token.escaped_quotes > 0 && token.quote != Quote::Single {
            let quotes = token.escaped_quotes;
            self.note(Tolerance::EscapedQuote, LedgerTarget::Value, quotes * 2, quotes);
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
        // The draft can be read even where no events are emitted.
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

// Escapes inside strings.

/// The result of reading at a backslash.
enum Escape {
    /// A character, and its length in the source.
    Char(char, usize),
    /// The text ends before the escape does.
    Unfinished,
    Bad(SyntaxErrorKind),
}

/// Returns the length of the escape that a control character needs.
fn length(control: u8) -> usize {
    match control {
        b'\n' | b'\t' | b'\r' | 0x08 | 0x0c => 2,
        _ => 6,
    }
}

/// Reads the escape whose backslash is at `at`. A single quote has an escape only in tolerant mode.
fn read(bytes: &[u8], at: usize, is_tolerant: bool) -> Escape {
    let Some(letter) = bytes.get(at + 1) else { return Escape::Unfinished };
    let char = match letter {
        b'"' | b'\\' | b'/' => char::from(*letter),
        b'\'' if is_tolerant => '\'',
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(bytes, at),
        _ => return Escape::Bad(SyntaxErrorKind::Escape),
    };
    Escape::Char(char, 2)
}

fn unicode(bytes: &[u8], at: usize) -> Escape {
    let high = match unit(bytes, at) {
        Ok(unit) => unit,
        Err(problem) => return problem,
    };
    match high {
        0xd800..=0xdbff => pair(bytes, at, high),
        // The low half of a pair on its own is no character.
        _ => {
            char::from_u32(high).map_or(Escape::Bad(SyntaxErrorKind::Surrogate), |char| Escape::Char(char, 6))
        }
    }
}

/// The first half of a surrogate pair was read: the second must follow.
fn pair(bytes: &[u8], at: usize, high: u32) -> Escape {
    match unit(bytes, at + 6) {
        Ok(low @ 0xdc00..=0xdfff) => {
            let scalar = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            char::from_u32(scalar)
                .map_or(Escape::Bad(SyntaxErrorKind::Surrogate), |char| Escape::Char(char, 12))
        }
        Err(Escape::Unfinished) => Escape::Unfinished,
        _ => Escape::Bad(SyntaxErrorKind::Surrogate),
    }
}

/// The 16 bits of `\uXXXX`.
fn unit(bytes: &[u8], at: usize) -> Result<u32, Escape> {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk::<6>() {
        Some([b'\\', b'u', digits @ ..]) => hex(digits).ok_or(Escape::Bad(SyntaxErrorKind::Escape)),
        Some(_) => Err(Escape::Bad(SyntaxErrorKind::Escape)),
        None if may_become_unit(rest) => Err(Escape::Unfinished),
        None => Err(Escape::Bad(SyntaxErrorKind::Escape)),
    }
}

fn hex(digits: &[u8; 4]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}

fn may_become_unit(start: &[u8]) -> bool {
    let (marker, digits) = start.split_at(start.len().min(2));
    b"\\u".starts_with(marker) && digits.iter().all(u8::is_ascii_hexdigit)
}

// Parsing numbers as they arrive.

/// An incomplete number.
#[derive(Clone, Copy)]
pub(super) struct NumberToken {
    start: usize,
    phase: Phase,
    plain: bool,
    /// Whether it is written in a form that JSON does not have, such as `+5`, `.5` or `5.`.
    is_lenient: bool,
}

/// The part of the number that was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `+`, or `-`.
    Sign,
    /// A leading zero, which no digit may follow.
    Zero,
    Whole,
    Point,
    /// A point without a digit before it.
    LeadingPoint,
    Fraction,
    /// `e` or `E`.
    E,
    ExponentSign,
    Exponent,
}

impl Machine {
    pub(super) fn number<S: Sink>(&mut self, first: u8, sink: &mut S) -> Step {
        let phase = match first {
            b'-' | b'+' => Phase::Sign,
            b'.' => Phase::LeadingPoint,
            b'0' => Phase::Zero,
            _ => Phase::Whole,
        };
        let is_lenient = matches!(first, b'+' | b'.');
        let token = NumberToken { start: self.pos, phase, plain: first != b'.', is_lenient };
        self.pos += 1;
        self.go_on_number(token, sink)
    }

    pub(super) fn go_on_number<S: Sink>(&mut self, mut token: NumberToken, sink: &mut S) -> Step {
        let bytes = self.tape.text.as_bytes();
        loop {
            if token.phase.repeats() {
                self.pos = scan::digits(bytes, self.pos);
            }
            let Some(&byte) = bytes.get(self.pos) else {
                self.token = Token::Number(token);
                return Ok(false);
            };
            let Some(phase) = token.phase.then(byte) else {
                if self.tolerant && token.phase == Phase::Sign && byte == b'.' {
                    token.phase = Phase::LeadingPoint;
                    token.is_lenient = true;
                    self.pos += 1;
                    continue;
                }
                break;
            };
            token.plain &= matches!(phase, Phase::Sign | Phase::Zero | Phase::Whole);
            token.phase = phase;
            self.pos += 1;
        }
        // `012`, `1.5kg` and `2024-05-01` are one bad token each, not a number and something after it.
        let sticks =
            bytes.get(self.pos).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        match token.phase.may_end(self.tolerant) && !sticks {
            true => self.add_number(token, sink),
            false => Err((SyntaxErrorKind::Number, self.pos)),
        }
    }

    /// Completes a number at the end of the text.
    pub(super) fn end_number<S: Sink>(&mut self, sink: &mut S) -> Step {
        match self.token {
            Token::Number(token) if token.phase.may_end(self.tolerant) => {
                self.token = Token::None;
                self.add_number(token, sink)
            }
            _ => Ok(true),
        }
    }

    fn add_number<S: Sink>(&mut self, token: NumberToken, sink: &mut S) -> Step {
        if token.is_lenient || token.phase == Phase::Point {
            return self.add_lenient_number(token.start, sink);
        }
        self.scalar(Entry::number(token.start, self.pos - token.start, token.plain), sink)
    }

    /// Adds a number as JSON writes it: `+5` is `5`, `.5` is `0.5`, and `5.` is `5`.
    #[cold]
    fn add_lenient_number<S: Sink>(&mut self, start: usize, sink: &mut S) -> Step {
        let source = self.tape.text.get(start..self.pos).unwrap_or_default();
        let digits = source.trim_start_matches(['+', '-']).trim_end_matches('.');
        let sign = if source.starts_with('-') { "-" } else { "" };
        let zero = if digits.starts_with('.') { "0" } else { "" };
        let literal = [sign, zero, digits].concat();
        let mut entry = Entry::number(start, literal.len(), !literal.contains(['.', 'e', 'E']));
        entry.set_decoded(self.tape.decoded.len());
        self.tape.decoded.push_str(&literal);
        let before = self.pos - start;
        let index = self.begin(entry, sink)?;
        self.note(Tolerance::NumberForm, LedgerTarget::Value, before, literal.len());
        self.complete(index, sink);
        Ok(true)
    }
}

impl Phase {
    #[inline]
    fn then(self, byte: u8) -> Option<Phase> {
        use Phase::{E, Exponent, ExponentSign, Fraction, LeadingPoint, Point, Sign, Whole, Zero};
        Some(match (self, byte) {
            (Sign, b'0') => Zero,
            (Sign, b'1'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | LeadingPoint, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => E,
            (E, b'+' | b'-') => ExponentSign,
            (E | ExponentSign, b'0'..=b'9') => Exponent,
            _ => return None,
        })
    }

    /// Whether any number of digits may follow.
    #[inline]
    fn repeats(self) -> bool {
        matches!(self, Phase::Whole | Phase::Fraction | Phase::Exponent)
    }

    fn may_end(self, is_tolerant: bool) -> bool {
        self == Phase::Zero || self.repeats() || is_tolerant && self == Phase::Point
    }
}
