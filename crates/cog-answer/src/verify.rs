//! `cog verify`: checks documents of any runtime against the specification.
//!
//! Nothing is repaired: a document that a run would repair is invalid. The published schemas decide the form of a
//! document. The rules of this module are those that a schema cannot express: the order of a stream, the consistency of
//! members, and the rules of a module.

mod chunk;
mod envelope;
mod module;
mod read;

use std::{fmt, str::FromStr, sync::OnceLock};

use cog_json::Node;
use cog_schema::{Contract, Rules, Violation};
use cog_spec::{Format, Manifest, ParseEnumError, Schema};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use self::module::{ModuleRules, verify_messages};
use self::{chunk::Part, module::Standard, read::Document};
use crate::error::{named, violation};

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

/// Checks a document. Without a kind, the members of the document decide it. With a module, the document must also
/// match its schema, its named checks and the rules of its tier.
pub fn verify(text: &str, kind: Option<Kind>, module: Option<ModuleRules<'_>>) -> Verdict {
    if kind == Some(Kind::Messages) {
        // Their reader knows more forms, and names comments.
        return verify_messages(text, None);
    }
    let document = match read::read(text, kind == Some(Kind::Stream)) {
        Ok(document) => document,
        Err(violation) => return Verdict::new(kind, vec![*violation]),
    };
    let Some(kind) = kind.or_else(|| read::kind(&document, module.is_some())) else {
        let message = "the document is not of a known kind; name its kind with `--kind`";
        return Verdict::new(None, vec![violation("", "kind", message)]);
    };
    let mut violations = Vec::new();
    let standard = Standard::new(module);
    match (kind, &document) {
        (Kind::Messages, _) => return verify_messages(text, None),
        (Kind::Stream, document) => chunk::check_stream(&standard, document, &mut violations),
        (_, Document::Lines(_)) => {
            violations.push(violation("", "json", format!("found several JSON lines; allowed: one {kind}")));
        }
        (Kind::Envelope, Document::One(value)) => envelope::check(&standard, value.node(), &mut violations),
        (Kind::Chunk, Document::One(value)) => chunk::check(&standard, value.node(), &mut violations),
        (Kind::Media, Document::One(value)) => module::check_media(value.node(), &mut violations),
        (Kind::Answer, Document::One(value)) => standard.check_data(None, value.node(), &mut violations),
        (Kind::Handoff, Document::One(value)) => module::check_handoff(value, &mut violations),
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

/// A chunk, and its index among all chunks.
#[derive(Clone, Copy)]
struct Item<'a> {
    index: usize,
    node: Node<'a>,
    part: Option<Part>,
}

impl Item<'_> {
    fn path(&self, inner: &str) -> String {
        match inner {
            "" => format!("[{}]", self.index),
            _ => format!("[{}].{inner}", self.index),
        }
    }

    fn seq(&self) -> Option<u64> {
        self.node.get("chunk")?.get("seq")?.as_u64()
    }
}

/// Returns the numbered chunks in the order of their numbers.
fn sorted<'a, 'b>(items: &'b [Item<'a>]) -> Vec<(&'b Item<'a>, u64)> {
    let mut numbered: Vec<_> = items.iter().filter_map(|item| Some((item, item.seq()?))).collect();
    numbered.sort_by_key(|(_, seq)| *seq);
    numbered
}

// Violations that no schema reports.

/// Returns the violation for a required member that is missing.
fn absent(path: &str, key: &str) -> Violation {
    violation(path, "required", format!("`{key}` is required but missing"))
}

/// The rule of what only the rulings require (ruling R77).
const BEYOND: &str = "beyond_specification";

/// Returns the warning for what the specification leaves open and a ruling requires.
fn beyond(path: &str, message: &str) -> Violation {
    violation(path, BEYOND, message)
}

/// Returns the violation for a value of another form.
fn mistyped(node: Node<'_>, path: &str, allowed: &str) -> Violation {
    let found = match node.kind() {
        cog_json::Kind::Null | cog_json::Kind::Bool | cog_json::Kind::Number => node.to_string(),
        cog_json::Kind::String if node.as_str() == Some("") => "an empty string".to_owned(),
        kind => named(kind).to_owned(),
    };
    violation(path, "type", format!("found {found}; allowed: {allowed}"))
}

/// Returns the path of a member; the empty path is the document.
fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

// The form of a document: checked against a part of a published schema.

/// The part of a published schema that applies to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Success,
    Failure,
    Meta,
    FirstChunk,
    Delta,
    Snapshot,
    ProgressChunk,
    FinalChunk,
    ErrorChunk,
    MediaUrl,
    MediaBase64,
    MediaFile,
    MediaUpload,
}

impl Form {
    const COUNT: usize = Self::MediaUpload as usize + 1;

    /// Checks a value at `path`. Skips violations whose path is reported already, or is among `decided`: paths that
    /// other rules decide.
    ///
    /// The rule of a violation is `required` for a missing member and otherwise `type`.
    fn check(self, value: Node<'_>, path: &str, decided: &[&str], found: &mut Vec<Violation>) {
        for one in self.contract().into_iter().flat_map(|contract| contract.check_input(value)) {
            let path = join(path, &one.path);
            let is_decided = decided.iter().any(|decided| is_within(&path, decided));
            // An arm of the other outcome is checked by `envelope::refuse`, for which null is absent.
            let is_arm = one.rule == "not";
            if !is_decided && !is_arm && !found.iter().any(|other| other.path == path) {
                let rule = if one.rule == "required" { "required" } else { "type" };
                found.push(violation(&path, rule, one.message));
            }
        }
    }

    /// Returns the compiled schema. The published schemas compile, which a test checks.
    fn contract(self) -> Option<&'static Contract> {
        static COMPILED: [OnceLock<Option<Contract>>; Form::COUNT] = [const { OnceLock::new() }; Form::COUNT];
        COMPILED.get(self as usize)?.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(self) -> Option<Contract> {
        let (schema, pointer) = self.location();
        let document: Value = serde_json::from_str(schema.text()).ok()?;
        let part =
            json!({ "input": document.pointer(pointer)?, "definitions": document.get("definitions")? });
        // Compiled as an input, to which no rules of answers, tiers or strictness apply.
        let manifest = Manifest::with_defaults("none", Format::V25, None);
        Contract::compile(&part, &Rules::from(&manifest)).ok()
    }

    fn location(self) -> (Schema, &'static str) {
        match self {
            Self::Success => (Schema::Envelope, "/oneOf/0"),
            Self::Failure => (Schema::Envelope, "/oneOf/1"),
            Self::Meta => (Schema::Envelope, "/definitions/meta"),
            Self::FirstChunk => (Schema::Chunk, "/definitions/metaChunk"),
            Self::Delta => (Schema::Chunk, "/definitions/delta"),
            Self::Snapshot => (Schema::Chunk, "/definitions/snapshot"),
            Self::ProgressChunk => (Schema::Chunk, "/definitions/progressChunk"),
            Self::FinalChunk => (Schema::Chunk, "/definitions/finalChunk"),
            Self::ErrorChunk => (Schema::Chunk, "/definitions/errorChunk"),
            Self::MediaUrl => (Schema::Media, "/definitions/url"),
            Self::MediaBase64 => (Schema::Media, "/definitions/base64"),
            Self::MediaFile => (Schema::Media, "/definitions/file"),
            Self::MediaUpload => (Schema::Media, "/definitions/upload_ref"),
        }
    }
}

/// Warns of the members of a chunk, or of a part of one, that the published schema does not name (ruling R77). Keys that start with
/// `_` are also allowed.
fn warn_of_unknown(value: Node<'_>, path: &str, definition: &str, found: &mut Vec<Violation>) {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| serde_json::from_str(Schema::Chunk.text()).unwrap_or_default());
    let known = schema.pointer(&format!("/definitions/{definition}/properties")).and_then(Value::as_object);
    let Some(known) = known else { return };
    for (key, _) in value.members().filter(|(key, _)| !known.contains_key(*key) && !key.starts_with('_')) {
        let path = below(path, key);
        if !found.iter().any(|other| other.path == path) {
            found.push(beyond(&path, "unknown key; readers ignore it"));
        }
    }
}

/// Moves a path of the contract, which starts at `input`, to the path of the value.
fn join(base: &str, path: &str) -> String {
    let rest = path.strip_prefix("input").unwrap_or(path);
    match rest.strip_prefix('.') {
        Some(key) => below(base, key),
        None => format!("{base}{rest}"),
    }
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod form_tests {
    use super::*;

    #[test]
    fn every_form_compiles() {
        for form in [
            Form::Success,
            Form::Failure,
            Form::Meta,
            Form::FirstChunk,
            Form::Delta,
            Form::Snapshot,
            Form::ProgressChunk,
            Form::FinalChunk,
            Form::ErrorChunk,
            Form::MediaUrl,
            Form::MediaBase64,
            Form::MediaFile,
            Form::MediaUpload,
        ] {
            assert!(form.contract().is_some(), "{form:?}");
        }
    }
}
