//! A row of the input.

use std::{
    cell::OnceCell,
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use bytes::Bytes;
use cog_json::Value;

use crate::{Place, RowError, RowErrorKind};

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
    place: Place,
    text: Result<Bytes, RowErrorKind>,
    parser: Arc<RowParser>,
    parsed: OnceCell<Result<Value, RowError>>,
}

/// Parses the text of a row.
pub type RowParser = dyn Fn(&[u8]) -> Result<Value, RowErrorKind> + Send + Sync;

impl RowInput {
    /// Creates an input from its text, or the reason why there is none.
    pub fn new(place: Place, text: Result<Bytes, RowErrorKind>, parser: Arc<RowParser>) -> Self {
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
        let input = || RowInput::new(Place::Line(1), Ok(Bytes::from_static(b"1")), Arc::clone(&parser));
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
        assert_eq!(RowHash::from_u32(hash.to_u32()), hash);
        assert_ne!(RowHash::from_bytes(br#"{"a": 2}"#), hash);
    }
}
