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
    /// The change.
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
    /// The key is a duplicate: the value that starts here replaces the earlier one. It is the first event of the value
    /// (ruling R44).
    Replaced,
    /// All earlier events were part of the model's reasoning, whose closing tag arrived now, and are retracted. Emitted at
    /// the root, in tolerant mode only, and only after text (see
    /// [`Parser::is_tentative`](crate::Parser::is_tentative)).
    Retracted {
        /// Whether the document was tentative; otherwise a caller may have reacted to its violations.
        tentative: bool,
    },
}
