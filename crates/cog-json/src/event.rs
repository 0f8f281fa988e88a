//! The events of a document that arrives.

use crate::{node::Node, path::Path};

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

// Limits on the size of a document.

/// Limits on one document. A document is refused where it exceeds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of nested containers.
    pub depth: u32,
    /// The maximum number of bytes, surrounding text included; never more than 4 GiB.
    pub bytes: u64,
    /// The maximum number of values and keys, which need 16 bytes of memory each.
    pub nodes: u32,
}

/// Offsets in the tape have 32 bits.
const MAX_BYTES: u64 = u32::MAX as u64 - 1;

/// Key tables are counted in 24 bits and take 17 keys each.
const MAX_NODES: u32 = 1 << 28;

impl Limits {
    /// The limits for a model's reply: 8 MiB.
    #[must_use]
    pub const fn model_output() -> Self {
        Limits { bytes: 8 << 20, ..Self::standard() }
    }

    /// The limits of the tree itself, at any depth: for text that this program wrote.
    #[must_use]
    pub const fn unbounded() -> Self {
        Limits { depth: u32::MAX, bytes: MAX_BYTES, nodes: MAX_NODES }
    }

    /// These limits with another bound on the bytes.
    #[must_use]
    pub const fn with_bytes(self, bytes: u64) -> Self {
        Limits { bytes, ..self }
    }

    /// These limits with another bound on the depth.
    #[must_use]
    pub const fn with_depth(self, depth: u32) -> Self {
        Limits { depth, ..self }
    }

    /// These limits with another bound on values and keys.
    #[must_use]
    pub const fn with_nodes(self, nodes: u32) -> Self {
        Limits { nodes, ..self }
    }

    /// Returns these limits, reduced to the offsets of the tree.
    pub(crate) fn addressable(self) -> Self {
        Limits { bytes: self.bytes.min(MAX_BYTES), nodes: self.nodes.min(MAX_NODES), ..self }
    }

    const fn standard() -> Self {
        Limits { depth: 128, bytes: 64 << 20, nodes: 4 << 20 }
    }
}

impl Default for Limits {
    /// 128 containers deep, 64 MiB, 4 Mi values and keys.
    fn default() -> Self {
        Self::standard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_beyond_the_offsets_of_the_tree_are_reduced() {
        let wide = Limits { depth: u32::MAX, bytes: u64::MAX, nodes: u32::MAX };
        assert_eq!(wide.addressable(), Limits::unbounded());
        assert_eq!(Limits::model_output().addressable(), Limits::model_output());
    }

    #[test]
    fn reply_may_have_8_mebibytes() {
        assert_eq!(Limits::model_output(), Limits::default().with_bytes(8 << 20));
    }
}
