//! What the parser tells while a document arrives.

use crate::node::Node;
use crate::path::Path;

/// One thing that happened, where, and the value it happened to.
///
/// Adjacent [`EventKind::Text`] events of one string depend on how the bytes were split; joined, they do not.
/// Nothing else depends on the split.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Where the value stands.
    pub path: &'a Path,
    /// The value as far as it is known.
    pub node: Node<'a>,
    /// What happened to it.
    pub kind: EventKind<'a>,
}

/// What happened to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// An array or object began.
    Open,
    /// More of a string arrived, decoded. The empty string tells one empty text.
    Text {
        /// The piece, never half a character.
        delta: &'a str,
        /// The first piece of this string.
        first: bool,
    },
    /// The value is complete and will not change. A number or literal tells nothing before.
    Complete,
    /// The key stood in this object before: the value that begins here takes the place of the earlier one,
    /// whatever was told of it. Comes before anything else of this value (ruling R44).
    Replaced,
    /// All that was told so far was no part of the document but of reasoning, whose closing tag came now; it is told
    /// of the root of what is dropped. Only in tolerant mode, where text stood before (see
    /// [`Parser::is_in_doubt`](crate::Parser::is_in_doubt)).
    Withdrawn {
        /// Whether the document was in doubt; otherwise its violations may have been acted on already.
        doubted: bool,
    },
}
