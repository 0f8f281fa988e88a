//! The events of a document that arrives.

use crate::node::Node;
use crate::path::Path;

/// An event, with the path and the value that it refers to.
///
/// The split of the bytes changes only how the text of a string is divided into [`EventKind::Text`] events.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The path of the value.
    pub path: &'a Path,
    /// The value so far.
    pub node: Node<'a>,
    /// What happened to it.
    pub kind: EventKind<'a>,
}

/// The kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// An array or object began.
    Open,
    /// More of a string arrived, decoded. An empty string emits one empty text.
    Text {
        /// The new text, never half a character.
        delta: &'a str,
        /// Whether this is the first text of this string.
        first: bool,
    },
    /// The value is complete and will not change. It is the only event of a number or literal.
    Complete,
    /// The key stood in this object before: the value that begins here takes the place of the earlier one,
    /// whatever was told of it. Comes before anything else of this value (ruling R44).
    Replaced,
    /// All that was told so far was no part of the document but of reasoning, whose closing tag came now; it is told
    /// of the root of what is dropped. Only in tolerant mode, where text stood before (see
    /// [`Parser::is_tentative`](crate::Parser::is_tentative)).
    Retracted {
        /// Whether the document was in doubt; otherwise its violations may have been acted on already.
        tentative: bool,
    },
}
