//! A row of the input.

use cog_json::Value;

/// A row of the input. A row that cannot be read is a row with an error, so that the batch goes on.
#[derive(Debug)]
pub struct Row<E> {
    /// The position in the input, from 0.
    pub number: u64,
    /// The hash of the row as it was read.
    pub hash: RowHash,
    /// The input of the run.
    pub input: Result<Value, E>,
}

/// The hash of a row as it was read, by which a resumed batch notices that the input has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowHash(u32);

impl RowHash {
    /// Returns the hash of the bytes of a row.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(crc32fast::hash(bytes))
    }

    /// Returns the number in the journal.
    #[must_use]
    pub fn to_u32(self) -> u32 {
        self.0
    }

    /// Returns the hash of a number in the journal.
    #[must_use]
    pub const fn from_u32(number: u32) -> Self {
        Self(number)
    }
}

/// Where the result of a row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position(pub(crate) u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_survives_its_way_through_the_journal() {
        let hash = RowHash::from_bytes(br#"{"a": 1}"#);
        assert_eq!(RowHash::from_u32(hash.to_u32()), hash);
        assert_ne!(RowHash::from_bytes(br#"{"a": 2}"#), hash);
    }
}
