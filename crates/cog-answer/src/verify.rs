//! Checking what the specification describes, whoever produced it: `cog verify`.
//!
//! Nothing is repaired here: what a run would put in order is a violation.

mod chunk;
mod detect;
mod envelope;
mod fields;
mod media;
mod module;
mod read;
mod runtime;
mod stream;

use std::{fmt, str::FromStr};

use cog_json::{ToJson, Writer};
use cog_schema::{Contract, Violation};
use cog_spec::{Manifest, ParseEnumError};

use self::{module::Standard, read::Document};
use crate::error::violation;

/// What can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `{ok, meta, data}` or `{ok, meta, error}` (SPEC 3.1).
    Envelope,
    /// One chunk of a stream (SPEC 3.2.1).
    Chunk,
    /// The chunks of a stream, a line each, in an array, or as server-sent events (SPEC 3.2.2, 3.2.4).
    Stream,
    /// A media source, or a generated medium (SPEC 4.2, 4.3).
    Media,
    /// Harmony messages (appendix, A.1).
    Messages,
    /// A handoff packet (appendix, A.3).
    Handoff,
    /// The data of a module's answer, without an envelope.
    Answer,
}

/// What a check tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether nothing was found.
    pub valid: bool,
    /// What it was checked as; none where that could not be found out.
    pub kind: Option<Kind>,
    /// What was found, each with its path: in a stream it starts with the number of the chunk, from 0.
    pub violations: Vec<Violation>,
}

/// Checks a text. Without a kind it is found out from what the text holds; with a module its schema and the rules of
/// its tier are checked too.
pub fn verify(text: &str, kind: Option<Kind>, module: Option<(&Manifest, &Contract)>) -> Verdict {
    let document = match read::read(text, kind == Some(Kind::Stream)) {
        Ok(document) => document,
        Err(violation) => return Verdict::new(kind, vec![*violation]),
    };
    let Some(kind) = kind.or_else(|| detect::kind(&document, module.is_some())) else {
        let message = "the document is not of a known kind; name its kind with `--kind`";
        return Verdict::new(None, vec![violation("", "kind", message)]);
    };
    let mut violations = Vec::new();
    let standard = Standard::new(module);
    match (kind, &document) {
        (Kind::Stream, document) => stream::check(&standard, document, &mut violations),
        (_, Document::Lines(_)) => {
            violations.push(violation("", "json", format!("found several JSON lines; allowed: one {kind}")));
        }
        (Kind::Envelope, Document::One(value)) => envelope::check(&standard, value.node(), &mut violations),
        (Kind::Chunk, Document::One(value)) => chunk::check(&standard, value.node(), &mut violations),
        (Kind::Media, Document::One(value)) => media::check(value.node(), &mut violations),
        (Kind::Answer, Document::One(value)) => standard.check_data(value.node(), &mut violations),
        (Kind::Messages | Kind::Handoff, _) => {
            violations.push(violation("", "kind", format!("checking {kind} is not supported yet")));
        }
    }
    Verdict::new(Some(kind), violations)
}

impl Verdict {
    fn new(kind: Option<Kind>, violations: Vec<Violation>) -> Self {
        Self { valid: violations.is_empty(), kind, violations }
    }
}

impl Kind {
    /// Every kind that can be asked for, in the order of the documentation.
    pub const ALL: [Kind; 7] =
        [Kind::Envelope, Kind::Chunk, Kind::Stream, Kind::Media, Kind::Messages, Kind::Handoff, Kind::Answer];

    /// The words for them.
    pub const WORDS: &'static [&'static str] =
        &["envelope", "chunk", "stream", "media", "messages", "handoff", "answer"];

    /// The kind in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Envelope => "envelope",
            Kind::Chunk => "chunk",
            Kind::Stream => "stream",
            Kind::Media => "media",
            Kind::Messages => "messages",
            Kind::Handoff => "handoff",
            Kind::Answer => "answer",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = ParseEnumError;

    fn from_str(word: &str) -> Result<Self, ParseEnumError> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| ParseEnumError { found: word.to_owned(), allowed: Self::WORDS })
    }
}

impl ToJson for Verdict {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("valid", &self.valid);
            w.field("kind", &self.kind.map(Kind::as_str));
            w.field("violations", &self.violations);
        });
    }
}

#[cfg(test)]
mod tests;
