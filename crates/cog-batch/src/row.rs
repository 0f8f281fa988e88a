//! A row of the input.

use std::{
    cell::LazyCell,
    fmt::{self, Debug, Formatter},
};

use cog_json::Value;

/// A row of the input. A row that cannot be read is a row with an error, so that the batch continues.
#[derive(Debug)]
pub struct Row<E> {
    /// The position in the input, from 0.
    pub number: u64,
    /// The hash of the row as it was read.
    pub hash: RowHash,
    /// The input of the run.
    pub input: RowInput<E>,
}

/// The input of a row, parsed when it is first needed: a resumed batch does not parse the rows that have a result.
pub struct RowInput<E>(LazyCell<Result<Value, E>, Parse<E>>);

type Parse<E> = Box<dyn FnOnce() -> Result<Value, E> + Send>;

impl<E> RowInput<E> {
    /// Creates an input that this function parses.
    pub fn new(parse: impl FnOnce() -> Result<Value, E> + Send + 'static) -> Self {
        Self(LazyCell::new(Box::new(parse)))
    }

    /// Returns the input, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn get(&self) -> Result<&Value, &E> {
        self.0.as_ref()
    }

    /// Returns the input, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn into_result(mut self) -> Result<Value, E> {
        std::mem::replace(LazyCell::force_mut(&mut self.0), Ok(Value::default()))
    }
}

impl<E: Send + 'static> From<Result<Value, E>> for RowInput<E> {
    fn from(parsed: Result<Value, E>) -> Self {
        Self::new(|| parsed)
    }
}

impl<E: Debug> Debug for RowInput<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
        let input = || {
            let parsed = Arc::clone(&parsed);
            RowInput::<()>::new(move || {
                parsed.fetch_add(1, Ordering::Relaxed);
                Ok(Value::parse("1").unwrap())
            })
        };
        drop(input());
        assert_eq!(parsed.load(Ordering::Relaxed), 0);
        let input = input();
        let number = |input: Result<&Value, &()>| input.unwrap().node().as_u64();
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
