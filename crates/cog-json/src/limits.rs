//! How much a document may cost.

/// Bounds on one document. A document over a bound is refused where it crosses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Containers open at the same time.
    pub depth: u32,
    /// Bytes of text, surrounding text included; at most 4 GiB whatever stands here.
    pub bytes: u64,
    /// Values and keys together, which bounds the memory of the tree: 16 bytes each.
    pub nodes: u32,
}

/// Offsets in the tape have 32 bits.
const MAX_BYTES: u64 = u32::MAX as u64 - 1;

/// Key tables are counted in 24 bits and take 17 keys each.
const MAX_NODES: u32 = 1 << 28;

impl Limits {
    /// What a model may answer: 8 MiB.
    #[must_use]
    pub const fn model_output() -> Self {
        Limits { bytes: 8 << 20, ..Self::standard() }
    }

    /// As much as the tree can hold, at any depth: for text this program wrote itself.
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

    /// The same, within what the tree can address.
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
