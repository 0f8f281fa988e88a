//! The deviations from JSON that the tolerant parser accepts, and their ledger.

use std::fmt;

use super::{
    Sink,
    machine::{Expect, Machine, Step, Token},
    opening,
};
use crate::{
    path::Path,
    scan::{self, string_run},
    tape::{Entry, Tag},
};

/// A deviation from JSON that was accepted (rulings R24, R26, R75).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviation {
    /// The kind of deviation.
    pub rule: Tolerance,
    /// The path of the value, in the form of ruling R44; for a comma or comment, the path of its container. It is the root
    /// for text around the document, and for the entry that sums up all deviations of a rule after the first eight. Keys
    /// after the first 1,024 bytes are left out.
    pub path: String,
    /// The length of the original text, in bytes.
    pub before: usize,
    /// The length of the JSON that replaces it, in bytes; 0 if it was left out.
    pub after: usize,
}

/// The kinds of deviation that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tolerance {
    /// A key without quotes, of letters, digits, `_` and `-`.
    BareKey,
    /// A code fence around the document.
    CodeFence,
    /// `// …`, `/* … */` or `# …` between tokens.
    Comment,
    /// A duplicate key in an object; the last one counts. Strict parsing accepts it too, as RFC 8259 does.
    DuplicateKey,
    /// `\'` in a string that is not in single quotes.
    EscapedQuote,
    /// A comma before the first member or element, or after another comma.
    ExtraComma,
    /// `true`, `false` or `null` in other letters, such as `TRUE`.
    LiteralCase,
    /// No comma between two members on separate lines.
    MissingComma,
    /// A number such as `+5`, `.5` or `5.`.
    NumberForm,
    /// `None`, `True` or `False`.
    PythonLiteral,
    /// A line break or another control character in a string.
    RawNewline,
    /// A string in single quotes.
    SingleQuotes,
    /// A string in typographic quotes.
    SmartQuotes,
    /// Prose, or reasoning in tags, before or after the document.
    SurroundingText,
    /// A comma before the end of an array or object.
    TrailingComma,
    /// White space of Unicode, or a character of no width, between tokens.
    UnicodeSpace,
}

impl Tolerance {
    /// Returns the name in repair ledgers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Tolerance::BareKey => "bare_key",
            Tolerance::CodeFence => "code_fence",
            Tolerance::Comment => "comment",
            Tolerance::DuplicateKey => "duplicate_key",
            Tolerance::EscapedQuote => "escaped_quote",
            Tolerance::ExtraComma => "extra_comma",
            Tolerance::LiteralCase => "literal_case",
            Tolerance::MissingComma => "missing_comma",
            Tolerance::NumberForm => "number_form",
            Tolerance::PythonLiteral => "python_literal",
            Tolerance::RawNewline => "raw_newline",
            Tolerance::SingleQuotes => "single_quotes",
            Tolerance::SmartQuotes => "smart_quotes",
            Tolerance::SurroundingText => "surrounding_text",
            Tolerance::TrailingComma => "trailing_comma",
            Tolerance::UnicodeSpace => "unicode_space",
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value to which an entry of the ledger refers.
#[derive(Clone, Copy)]
pub(super) enum LedgerTarget {
    /// The current value, or the member of the current key.
    Value,
    /// The current container.
    Container,
}

/// The deviations so far; its size is bounded.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Vec<Deviation>,
}

/// The number of entries of each rule with a path; further ones are summed up.
const LOCATED: usize = 8;

impl Ledger {
    pub(super) fn entries(&self) -> &[Deviation] {
        &self.entries
    }

    /// Records one deviation; `path` is called only if the entry has a path.
    pub(super) fn note(
        &mut self,
        rule: Tolerance,
        path: impl FnOnce() -> String,
        before: usize,
        after: usize,
    ) {
        // A reply of megabytes in single quotes must not have a ledger of megabytes.
        match self.entries.iter().filter(|entry| entry.rule == rule).count() {
            known if known < LOCATED => self.entries.push(Deviation { rule, path: path(), before, after }),
            LOCATED => self.entries.push(Deviation { rule, path: String::new(), before, after }),
            _ => self.add(rule, before, after),
        }
    }

    /// Records bytes around the document; those before and after it share one entry.
    pub(super) fn note_around(&mut self, rule: Tolerance, bytes: usize) {
        match self.entries.iter().any(|entry| entry.rule == rule) {
            _ if bytes == 0 => {}
            true => self.add(rule, bytes, 0),
            false => self.entries.push(Deviation { rule, path: String::new(), before: bytes, after: 0 }),
        }
    }

    fn add(&mut self, rule: Tolerance, before: usize, after: usize) {
        if let Some(entry) = self.entries.iter_mut().rfind(|entry| entry.rule == rule) {
            entry.before += before;
            entry.after += after;
        }
    }
}

// The deviations from JSON that the tolerant parser reads (rulings R24, R75).

/// An incomplete comment.
#[derive(Clone, Copy)]
pub(super) struct CommentToken {
    start: usize,
    block: bool,
}

/// The maximum length of the keys in a path of the ledger, in bytes.
const MAX_PATH: usize = 1024;

/// Literals that JSON does not have. The first three are exact, and the others may be in any case.
const LITERALS: [(&str, Tag, Tolerance); 6] = [
    ("None", Tag::Null, Tolerance::PythonLiteral),
    ("True", Tag::True, Tolerance::PythonLiteral),
    ("False", Tag::False, Tolerance::PythonLiteral),
    ("null", Tag::Null, Tolerance::LiteralCase),
    ("true", Tag::True, Tolerance::LiteralCase),
    ("false", Tag::False, Tolerance::LiteralCase),
];

impl Machine {
    /// Reads at a byte that JSON does not allow here, if the tolerant parser does.
    pub(super) fn tolerate<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Option<Step> {
        if !self.tolerant {
            return None;
        }
        match byte {
            // What follows the document is not parsed here: it may be prose, or another object.
            _ if self.expect == Expect::End => Some(Ok(false)),
            b'/' | b'#' => self.comment(byte),
            b']' if self.expect == Expect::Element => Some(self.trailing_comma(sink)),
            b'}' if self.expect == Expect::Key => Some(self.trailing_comma(sink)),
            b',' => self.extra_comma(),
            _ if self.skip_unicode_space() => Some(Ok(true)),
            _ => match self.expect {
                Expect::Value | Expect::FirstElement | Expect::Element => self.lenient_value(byte, sink),
                Expect::FirstKey | Expect::Key => self.lenient_key(sink),
                Expect::Comma => self.missing_comma(),
                Expect::Colon | Expect::End => None,
            },
        }
    }

    fn trailing_comma<S: Sink>(&mut self, sink: &mut S) -> Step {
        self.note(Tolerance::TrailingComma, LedgerTarget::Container, 1, 0);
        self.close(sink)
    }

    /// A comma before the first member or element, or after another comma.
    fn extra_comma(&mut self) -> Option<Step> {
        self.expect = match self.expect {
            Expect::FirstElement | Expect::Element => Expect::Element,
            Expect::FirstKey | Expect::Key => Expect::Key,
            _ => return None,
        };
        self.pos += 1;
        self.note(Tolerance::ExtraComma, LedgerTarget::Container, 1, 0);
        Some(Ok(true))
    }

    fn skip_unicode_space(&mut self) -> bool {
        let Some(space) = self.next_char().filter(|char| opening::is_unicode_space(*char)) else {
            return false;
        };
        self.pos += space.len_utf8();
        self.note(Tolerance::UnicodeSpace, LedgerTarget::Container, space.len_utf8(), 0);
        true
    }

    /// At the next member, whose comma is missing: it must be on a line of its own.
    fn missing_comma(&mut self) -> Option<Step> {
        // On one line it would be a guess: `{"a": "x" "b": 1}` may as well have an unescaped quote in a string.
        let (before, rest) = self.tape.text.split_at_checked(self.pos)?;
        let is_new_line =
            before.chars().rev().take_while(|char| opening::is_space(*char)).any(|char| char == '\n');
        let first = rest.chars().next()?;
        let is_key = first == '"' || first == '\'' || opening::is_key(first) || Quote::smart(first).is_some();
        let is_member = self.frames.last().is_some_and(|frame| frame.object);
        (is_member && is_new_line && is_key).then(|| {
            self.expect = Expect::Key;
            self.note(Tolerance::MissingComma, LedgerTarget::Container, 0, 1);
            Ok(true)
        })
    }

    fn lenient_key<S: Sink>(&mut self, sink: &mut S) -> Option<Step> {
        let first = self.next_char()?;
        match Quote::smart(first) {
            _ if first == '\'' => Some(self.begin_key(Quote::Single, sink)),
            Some(quote) => Some(self.begin_key(quote, sink)),
            None => opening::is_key(first).then(|| self.go_on_bare_key::<S>(self.pos)),
        }
    }

    /// Continues a bare key that began at `start`.
    pub(super) fn go_on_bare_key<S: Sink>(&mut self, start: usize) -> Step {
        let rest = self.tape.text.get(self.pos..).unwrap_or_default();
        self.pos += rest.len() - rest.trim_start_matches(opening::is_key).len();
        if self.pos == self.tape.text.len() {
            self.token = Token::BareKey(start);
            return Ok(false);
        }
        let length = self.pos - start;
        self.add_key::<S>(Entry::scalar(Tag::String, start, length))?;
        self.note(Tolerance::BareKey, LedgerTarget::Value, length, length + 2);
        Ok(true)
    }

    fn lenient_value<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Option<Step> {
        match (byte, self.next_char().and_then(Quote::smart)) {
            (b'\'', _) => Some(self.begin_string(Quote::Single, sink)),
            (_, Some(quote)) => Some(self.begin_string(quote, sink)),
            (b'+' | b'.', _) => Some(self.number(byte, sink)),
            _ => self.lenient_literal(sink),
        }
    }

    /// Reads a literal of Python, or one in other letters. While the text ends inside it, it is read again from its
    /// start.
    fn lenient_literal<S: Sink>(&mut self, sink: &mut S) -> Option<Step> {
        let rest = self.tape.text.as_bytes().get(self.pos..).unwrap_or_default();
        for (word, tag, rule) in LITERALS {
            let length = word.len().min(rest.len());
            let is_exact = rule == Tolerance::PythonLiteral;
            if !is_same(word.as_bytes().get(..length)?, rest.get(..length)?, is_exact) {
                continue;
            }
            return Some(match length == word.len() {
                true => self.add_literal(length, tag, rule, sink),
                false => Ok(false),
            });
        }
        None
    }

    fn add_literal<S: Sink>(&mut self, length: usize, tag: Tag, rule: Tolerance, sink: &mut S) -> Step {
        let index = self.begin(Entry::scalar(tag, self.pos, length), sink)?;
        self.pos += length;
        self.note(rule, LedgerTarget::Value, length, length);
        self.complete(index, sink);
        Ok(true)
    }

    fn next_char(&self) -> Option<char> {
        self.tape.text.get(self.pos..)?.chars().next()
    }

    fn comment(&mut self, byte: u8) -> Option<Step> {
        let next = self.tape.text.as_bytes().get(self.pos + 1);
        let block = match (byte, next) {
            (b'#', _) | (_, Some(b'/')) => false,
            (_, Some(b'*')) => true,
            // The second character of the comment is still missing.
            (_, None) => return Some(Ok(false)),
            _ => return None,
        };
        let start = self.pos;
        self.pos += if byte == b'#' { 1 } else { 2 };
        Some(self.go_on_comment(CommentToken { start, block }))
    }

    pub(super) fn go_on_comment(&mut self, token: CommentToken) -> Step {
        let text = &self.tape.text;
        let end = if token.block { "*/" } else { "\n" };
        let Some(length) = text.get(self.pos..).and_then(|rest| rest.find(end)) else {
            // It may be the first half of `*/`.
            let half = token.block && text.len() > self.pos && text.ends_with('*');
            self.pos = text.len() - usize::from(half);
            self.token = Token::Comment(token);
            return Ok(false);
        };
        // The line break is white space, not part of the comment.
        self.pos += length + if token.block { end.len() } else { 0 };
        self.note(Tolerance::Comment, LedgerTarget::Container, self.pos - token.start, 0);
        Ok(true)
    }

    pub(super) fn note(&mut self, rule: Tolerance, target: LedgerTarget, before: usize, after: usize) {
        // Taken out, because the path is computed from the rest of the machine.
        let mut ledger = std::mem::take(&mut self.ledger);
        ledger.note(rule, || self.target_path(target), before, after);
        self.ledger = ledger;
    }

    fn target_path(&self, target: LedgerTarget) -> String {
        let mut path = Path::root();
        let mut room = MAX_PATH;
        let inner = match target {
            LedgerTarget::Value => self.frames.len(),
            LedgerTarget::Container => self.frames.len().saturating_sub(1),
        };
        for frame in self.frames.iter().take(inner) {
            if !frame.object {
                path.push_index(frame.count.saturating_sub(1) as usize);
                continue;
            }
            let key = self.tape.string(self.tape.entry(frame.key));
            match room.checked_sub(key.len()) {
                Some(left) => room = left,
                None => break,
            }
            if !self.is_wrapper(frame.key, key) {
                path.push_key(key);
            }
        }
        path.to_string()
    }
}

fn is_same(word: &[u8], text: &[u8], is_exact: bool) -> bool {
    if is_exact { word == text } else { word.eq_ignore_ascii_case(text) }
}

// The quotes around strings.

/// The kind of quotes around a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    /// Typographic quotes that begin with this character.
    Smart(char),
}

impl Quote {
    /// Returns the typographic quote that `char` opens.
    pub(super) fn smart(char: char) -> Option<Self> {
        matches!(char, '“' | '”' | '„' | '‘' | '’' | '‚').then_some(Quote::Smart(char))
    }

    /// Returns the length of the opening quote.
    pub(super) fn len(self) -> usize {
        match self {
            Quote::Double | Quote::Single => 1,
            Quote::Smart(open) => open.len_utf8(),
        }
    }

    /// Returns the first offset from `from` on that is not plain text.
    pub(super) fn run(self, bytes: &[u8], from: usize) -> usize {
        match self {
            Quote::Double => string_run::<b'"'>(bytes, from),
            Quote::Single => string_run::<b'\''>(bytes, from),
            // The first byte of each typographic quote.
            Quote::Smart(_) => {
                scan::position(bytes, from, |&byte| byte == 0xe2 || byte == b'\\' || byte.is_ascii_control())
            }
        }
    }

    /// Returns what `rest` begins with. The reader has handled an escape.
    pub(super) fn mark(self, rest: &str) -> Mark {
        match (self, rest.as_bytes().first().copied().unwrap_or_default()) {
            (Quote::Double, b'"') | (Quote::Single, b'\'') => Mark::Closing,
            (_, 0..b' ') => Mark::Control,
            (Quote::Smart(open), _) => smart_mark(open, rest.chars().next().unwrap_or_default()),
            _ => Mark::Text(1),
        }
    }
}

/// Returns what `char` is in a string that the typographic quote `open` opens.
fn smart_mark(open: char, char: char) -> Mark {
    match (open, char) {
        ('„', '“' | '”') | ('“' | '”', '”') => Mark::Closing,
        ('‚', '‘' | '’') | ('‘' | '’', '’') => Mark::Closing,
        _ if char == open => Mark::Nested,
        _ => Mark::Text(char.len_utf8()),
    }
}

/// What interrupts plain text, except an escape.
pub(super) enum Mark {
    Closing,
    /// The opening quote again: it is unclear which quote closes the string.
    Nested,
    Control,
    /// A character of the text, of this length.
    Text(usize),
}
