//! A row of the input.

mod error;

use std::{
    cell::OnceCell,
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use bytes::Bytes;
use cog_json::Value;

pub(crate) use self::error::MAX_LINE;
pub use self::error::{RowError, RowErrorKind, RowLocation};

/// A row of the input. A row that cannot be read is a row with an error, so that the batch continues.
#[derive(Debug)]
pub struct Row {
    /// The position in the input, from 0.
    pub number: u64,
    /// The hash of the row as it was read.
    pub hash: RowHash,
    /// The input of the run.
    pub input: RowInput,
}

/// The input of a row, parsed when it is first needed: a resumed batch does not parse the rows that have a result.
///
/// The rows of an input share their parser, and many rows the memory of their texts. So the thread that reads them allocates
/// nothing for each row that another thread frees, which takes a lock.
pub struct RowInput {
    place: RowLocation,
    text: Result<Bytes, RowErrorKind>,
    parser: Arc<RowParser>,
    parsed: OnceCell<Result<Value, RowError>>,
}

/// Parses the text of a row.
pub type RowParser = dyn Fn(&[u8]) -> Result<Value, RowErrorKind> + Send + Sync;

impl RowInput {
    /// Creates an input from its text, or the reason why there is none.
    pub fn new(place: RowLocation, text: Result<Bytes, RowErrorKind>, parser: Arc<RowParser>) -> Self {
        Self { place, text, parser, parsed: OnceCell::new() }
    }

    /// Returns the input, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn get(&self) -> Result<&Value, &RowError> {
        self.parsed.get_or_init(|| self.parse()).as_ref()
    }

    /// Returns the input, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn into_result(mut self) -> Result<Value, RowError> {
        self.parsed.take().unwrap_or_else(|| self.parse())
    }

    fn parse(&self) -> Result<Value, RowError> {
        let parsed = match &self.text {
            Ok(text) => (self.parser)(text),
            Err(kind) => Err(kind.clone()),
        };
        parsed.map_err(|kind| RowError { place: self.place, kind })
    }
}

impl Debug for RowInput {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { place, text, parsed, .. } = self;
        f.debug_struct("RowInput").field("place", place).field("text", text).field("parsed", parsed).finish()
    }
}

/// The hash of a row as it was read, by which a resumed batch notices that the input has changed, and finds the results of rows
/// that have moved. It has 63 bits: among millions of rows, 32 would be the same for some that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowHash(u64);

/// Computes the hash of a row from its parts: a CRC-32, and 31 bits of FNV-1a.
#[derive(Clone)]
pub(crate) struct RowHasher {
    crc: crc32fast::Hasher,
    fnv: u64,
}

impl RowHasher {
    pub(crate) fn new() -> Self {
        Self { crc: crc32fast::Hasher::new(), fnv: 0xcbf2_9ce4_8422_2325 }
    }

    /// Adds what all rows have in common, such as the names of their columns. The CRC covers the row alone.
    pub(crate) fn with_common(mut self, bytes: &[u8]) -> Self {
        self.add_fnv(bytes);
        self
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.crc.update(bytes);
        self.add_fnv(bytes);
    }

    pub(crate) fn finish(self) -> RowHash {
        RowHash(u64::from(self.crc.finalize()) | (self.fnv >> 33) << 32)
    }

    /// Returns the hash of a row that begins with what was added.
    pub(crate) fn hash(&self, bytes: &[u8]) -> RowHash {
        let mut hasher = self.clone();
        hasher.add(bytes);
        hasher.finish()
    }

    fn add_fnv(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fnv = (self.fnv ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl RowHash {
    /// Returns the hash of the bytes of a row.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        RowHasher::new().hash(bytes)
    }

    /// Returns the CRC-32, for the names of jobs.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the CRC is the lower half")]
    pub const fn to_u32(self) -> u32 {
        self.0 as u32
    }

    /// Returns the number in the journal, of 63 bits.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Returns the hash of a number in the journal.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number & (u64::MAX >> 1))
    }
}

/// Where the result of a row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position(pub(crate) u64);

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;

    #[test]
    fn input_is_parsed_once_and_only_if_it_is_needed() {
        let parsed = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&parsed);
        let parser: Arc<RowParser> = Arc::new(move |text| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Value::parse_bytes(text).unwrap())
        });
        let input = || RowInput::new(RowLocation::Line(1), Ok(Bytes::from_static(b"1")), Arc::clone(&parser));
        drop(input());
        assert_eq!(parsed.load(Ordering::Relaxed), 0);
        let input = input();
        let number = |input: Result<&Value, &RowError>| input.unwrap().node().as_u64();
        assert_eq!((number(input.get()), number(input.get())), (Some(1), Some(1)));
        assert_eq!(number(input.into_result().as_ref()), Some(1));
        assert_eq!(parsed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn hash_survives_its_way_through_the_journal() {
        let hash = RowHash::from_bytes(br#"{"a": 1}"#);
        assert_eq!(RowHash::from_u64(hash.to_u64()), hash);
        assert_ne!(RowHash::from_bytes(br#"{"a": 2}"#), hash);
    }

    #[test]
    fn what_rows_have_in_common_changes_their_hashes_but_not_their_crc() {
        let of = |header: &[u8]| RowHasher::new().with_common(header).hash(b"1,2");
        assert_ne!(of(b"a,b"), of(b"b,a"));
        assert_eq!(of(b"a,b").to_u32(), RowHash::from_bytes(b"1,2").to_u32());
        let mut parts = RowHasher::new();
        parts.add(b"1,");
        parts.add(b"2");
        assert_eq!(parts.finish(), RowHash::from_bytes(b"1,2"));
    }
}
