//! `cog verify`: checks documents of any runtime against the specification.
//!
//! Nothing is repaired: a document that a run would repair is invalid. The published schemas decide the form of a
//! document. The rules of this module are those that a schema cannot express: the order of a stream, the consistency of
//! members, and the rules of a module.

mod chunk;
mod consistency;
mod content;
mod detect;
mod envelope;
mod form;
mod handoff;
mod item;
mod media;
mod messages;
mod module;
mod read;
mod stream;
mod violations;

use std::{fmt, str::FromStr};

use cog_schema::{Contract, Violation};
use cog_spec::{Manifest, ParseEnumError};
use serde::{Serialize, Serializer};

use self::{module::Standard, read::Document};

pub use self::messages::verify_messages;
use crate::error::violation;

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `{ok, meta, data}` or `{ok, meta, error}` (SPEC 3.1).
    Envelope,
    /// One chunk of a stream (SPEC 3.2.1).
    Chunk,
    /// The chunks of a stream: one per line, in an array, or as server-sent events (SPEC 3.2.2, 3.2.4).
    Stream,
    /// A media source, or a generated media item (SPEC 4.2, 4.3).
    Media,
    /// Harmony messages (appendix, A.1).
    Messages,
    /// A handoff packet (appendix, A.3).
    Handoff,
    /// The data of a module's answer, without an envelope.
    Answer,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether there are no violations.
    pub valid: bool,
    /// The kind of the document; none if it was not recognized.
    pub kind: Option<Kind>,
    /// The violations. In a stream, a path starts with the index of the chunk.
    pub violations: Vec<Violation>,
    /// What is valid, but probably not what its author wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Violation>,
}

/// Checks a document. Without a kind, the members of the document decide it. With a module, the document must also match
/// its schema and the rules of its tier.
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
        (Kind::Messages, _) => return verify_messages(text, None),
        (Kind::Stream, document) => stream::check(&standard, document, &mut violations),
        (_, Document::Lines(_)) => {
            violations.push(violation("", "json", format!("found several JSON lines; allowed: one {kind}")));
        }
        (Kind::Envelope, Document::One(value)) => envelope::check(&standard, value.node(), &mut violations),
        (Kind::Chunk, Document::One(value)) => chunk::check(&standard, value.node(), &mut violations),
        (Kind::Media, Document::One(value)) => media::check(value.node(), &mut violations),
        (Kind::Answer, Document::One(value)) => standard.check_data(value.node(), &mut violations),
        (Kind::Handoff, Document::One(value)) => handoff::check(value, &mut violations),
    }
    let (warnings, violations) = violations.into_iter().partition(|one| standard.is_warning(one));
    Verdict { warnings, ..Verdict::new(Some(kind), violations) }
}

impl Verdict {
    /// Returns the verdict of a file that is not text, with the reason.
    pub fn not_text(kind: Option<Kind>, reason: &str) -> Self {
        Self::new(kind, vec![violation("", "json", format!("not JSON: {reason}"))])
    }

    fn new(kind: Option<Kind>, violations: Vec<Violation>) -> Self {
        Self { valid: violations.is_empty(), kind, violations, warnings: Vec::new() }
    }
}

impl Kind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Kind; 7] =
        [Kind::Envelope, Kind::Chunk, Kind::Stream, Kind::Media, Kind::Messages, Kind::Handoff, Kind::Answer];

    /// The names of all kinds, in the same order.
    pub const NAMES: &'static [&'static str] =
        &["envelope", "chunk", "stream", "media", "messages", "handoff", "answer"];

    /// Returns the name of the kind.
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

    fn from_str(text: &str) -> Result<Self, ParseEnumError> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| ParseEnumError { found: text.to_owned(), allowed: Self::NAMES })
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
