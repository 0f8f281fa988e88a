//! What the tolerant parser lets pass, and the account of it.

use std::fmt;

/// A thing that is not JSON and was let pass (rulings R24, R26).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tolerated {
    /// What it was.
    pub rule: Tolerance,
    /// Where, as ruling R44 writes paths: the value, or for a comma or comment the container it stands in.
    /// The root for what stands around the document, for what follows the first eight of a rule (they are summed
    /// up in one entry), and for the part of a path that is longer than 1,024 bytes.
    pub path: String,
    /// Bytes that stood there.
    pub before: usize,
    /// Bytes that JSON has in their place; 0 when they were left out.
    pub after: usize,
}

/// The kinds of near-JSON that are let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tolerance {
    /// A code fence around the document.
    CodeFence,
    /// `// …`, `/* … */` or `# …` between tokens.
    Comment,
    /// A key that the object has already; the last counts. The one thing that strict parsing lets pass, since
    /// RFC 8259 does.
    DuplicateKey,
    /// `None`, `True` or `False`.
    PythonLiteral,
    /// A line break or another control character in a string.
    RawNewline,
    /// A string in single quotes.
    SingleQuotes,
    /// Prose, or reasoning in `<think>`, before or after the document.
    SurroundingText,
    /// A comma before the end of an array or object.
    TrailingComma,
}

impl Tolerance {
    /// The name that repair ledgers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Tolerance::CodeFence => "code_fence",
            Tolerance::Comment => "comment",
            Tolerance::DuplicateKey => "duplicate_key",
            Tolerance::PythonLiteral => "python_literal",
            Tolerance::RawNewline => "raw_newline",
            Tolerance::SingleQuotes => "single_quotes",
            Tolerance::SurroundingText => "surrounding_text",
            Tolerance::TrailingComma => "trailing_comma",
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What was let pass so far, of bounded size.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Vec<Tolerated>,
}

/// Entries of each rule that tell their place; the rest is summed up.
const LOCATED: usize = 8;

impl Ledger {
    pub(super) fn entries(&self) -> &[Tolerated] {
        &self.entries
    }

    /// Notes one thing; `path` is asked for only when it will be told.
    pub(super) fn note(
        &mut self,
        rule: Tolerance,
        path: impl FnOnce() -> String,
        before: usize,
        after: usize,
    ) {
        match self.entries.iter().filter(|entry| entry.rule == rule).count() {
            known if known < LOCATED => self.entries.push(Tolerated { rule, path: path(), before, after }),
            LOCATED => self.entries.push(Tolerated { rule, path: String::new(), before, after }),
            _ => self.add(rule, before, after),
        }
    }

    /// Notes bytes that stand around the document; before and after it make one entry.
    pub(super) fn note_around(&mut self, rule: Tolerance, bytes: usize) {
        match self.entries.iter().any(|entry| entry.rule == rule) {
            _ if bytes == 0 => {}
            true => self.add(rule, bytes, 0),
            false => self.entries.push(Tolerated { rule, path: String::new(), before: bytes, after: 0 }),
        }
    }

    fn add(&mut self, rule: Tolerance, before: usize, after: usize) {
        if let Some(entry) = self.entries.iter_mut().rfind(|entry| entry.rule == rule) {
            entry.before += before;
            entry.after += after;
        }
    }
}
