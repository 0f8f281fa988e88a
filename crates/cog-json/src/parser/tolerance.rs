//! The deviations from JSON that the tolerant parser accepts, and their ledger.

use std::fmt;

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
