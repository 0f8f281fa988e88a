//! A row of the input, and why a row cannot be read.

use std::{
    cell::OnceCell,
    fmt::{self, Debug, Display, Formatter},
    sync::Arc,
};

use bytes::Bytes;
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

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
    location: RowLocation,
    text: Result<Bytes, RowErrorKind>,
    parser: Arc<RowParser>,
    parsed: OnceCell<Result<ParsedRow, RowError>>,
}

/// A row that was parsed.
#[derive(Debug, Clone)]
pub struct ParsedRow {
    /// The input of the run.
    pub input: Value,
    /// The members that its result gets, as JSON without braces: `"id":…,"kept":{…}`. Empty if it gets none.
    pub carried: String,
}

/// Parses the text of a row.
pub type RowParser = dyn Fn(&[u8]) -> Result<ParsedRow, RowErrorKind> + Send + Sync;

impl RowInput {
    /// Creates an input from its text, or the reason why there is none.
    pub fn new(location: RowLocation, text: Result<Bytes, RowErrorKind>, parser: Arc<RowParser>) -> Self {
        Self { location, text, parser, parsed: OnceCell::new() }
    }

    /// Returns where the row is in the input.
    #[must_use]
    pub fn location(&self) -> RowLocation {
        self.location
    }

    /// Returns the input, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn get(&self) -> Result<&Value, &RowError> {
        self.parsed.get_or_init(|| self.parse()).as_ref().map(|row| &row.input)
    }

    /// Returns the members that the result gets; none if the row cannot be parsed.
    pub(crate) fn carried(&self) -> Option<&str> {
        self.parsed.get_or_init(|| self.parse()).as_ref().ok().map(|row| row.carried.as_str())
    }

    /// Returns the parsed row, or the reason why there is none.
    ///
    /// # Errors
    /// The row cannot be parsed.
    pub fn into_result(mut self) -> Result<ParsedRow, RowError> {
        self.parsed.take().unwrap_or_else(|| self.parse())
    }

    fn parse(&self) -> Result<ParsedRow, RowError> {
        let parsed = match &self.text {
            Ok(text) => (self.parser)(text),
            Err(kind) => Err(kind.clone()),
        };
        parsed.map_err(|kind| RowError { location: self.location, kind })
    }
}

impl Debug for RowInput {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { location, text, parsed, .. } = self;
        let mut debug = f.debug_struct("RowInput");
        debug.field("location", location).field("text", text).field("parsed", parsed).finish()
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

/// The result of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowResult<'a> {
    /// The position of the row in the input, from 0.
    pub row: u64,
    /// The hash of the row as it was read.
    pub hash: RowHash,
    /// Whether its run succeeded.
    pub ok: bool,
    /// Whether the provider did not answer it, so that it runs again when the batch continues.
    pub is_unanswered: bool,
    /// The JSON line, without its line break: the row, then the members of the envelope.
    pub line: &'a [u8],
}

impl<'a> RowResult<'a> {
    /// Returns the result of a row with a line that is already JSON.
    #[must_use]
    pub fn from_line(row: u64, hash: RowHash, ok: bool, line: &'a [u8]) -> Self {
        Self { row, hash, ok, is_unanswered: false, line }
    }
}

/// Where the result of a row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position(pub(crate) u64);

/// The maximum length of a line or a CSV record, in bytes.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{location}: {kind}")]
pub struct RowError {
    /// Where it is in the input.
    pub location: RowLocation,
    /// What is wrong with it.
    pub kind: RowErrorKind,
}

/// Where a row is in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowLocation {
    /// The line of a text file, from 1.
    Line(u64),
    /// The row of a table, from 0.
    Row(u64),
}

impl RowLocation {
    /// Returns the unit and the number.
    pub(crate) fn parts(self) -> (&'static str, u64) {
        match self {
            Self::Line(line) => ("line", line),
            Self::Row(row) => ("row", row),
        }
    }
}

impl Display for RowLocation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (unit, number) = self.parts();
        write!(f, "{unit} {number}")
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowErrorKind {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// The header has carriage returns that end no line.
    #[error("the lines end with carriage returns alone")]
    CarriageReturn,
    /// The line exceeds the limit.
    #[error("the line is longer than {} MiB", MAX_LINE >> 20)]
    TooLarge,
    /// The line contains a NUL byte.
    #[error("the line contains a NUL byte at column {column}")]
    Nul {
        /// The byte in the line, from 1.
        column: usize,
    },
    /// The line is not UTF-8.
    #[error("the line is not UTF-8: invalid byte 0x{byte:02X} at column {column}")]
    NotUtf8 {
        /// The byte in the line, from 1.
        column: usize,
        /// The invalid byte.
        byte: u8,
    },
    /// The line is not JSON.
    #[error("not JSON: column {column}: {reason}")]
    NotJson {
        /// The column, from 1.
        column: usize,
        /// What the parser expected.
        reason: String,
    },
    /// The JSON is neither an object nor a string.
    #[error("a row is a JSON object or a string, not {found}")]
    NotAnInput {
        /// The kind of the value.
        found: &'static str,
    },
    /// A quote of a CSV record is not closed, or text follows a closing quote.
    #[error("a quote is not closed, or text follows a closing quote")]
    TornQuote,
    /// A CSV record has more or fewer fields than the header.
    #[error("the row has {found} fields, and the header has {expected}")]
    FieldCount {
        /// The fields of the header.
        expected: usize,
        /// The fields of the row.
        found: usize,
    },
    /// The fields of a row of a table have no input.
    #[error("the row cannot be an input: {reason}")]
    NoInput {
        /// The reason.
        reason: String,
    },
    /// The row of a table exceeds the limit.
    #[cfg(feature = "arrow")]
    #[error("the row is larger than {} MiB", MAX_LINE >> 20)]
    RowTooLarge,
    /// A cell of a table has no JSON.
    #[cfg(feature = "arrow")]
    #[error("column `{column}`: {reason}")]
    Cell {
        /// The column.
        column: String,
        /// The reason.
        reason: crate::ArrayError,
    },
}

impl RowErrorKind {
    const fn code(&self) -> Code {
        match self {
            Self::TooLarge => Code::InputTooLarge,
            #[cfg(feature = "arrow")]
            Self::RowTooLarge => Code::InputTooLarge,
            #[cfg(feature = "arrow")]
            Self::Cell { .. } => Code::InvalidInput,
            Self::NoInput { .. } | Self::NotAnInput { .. } | Self::Empty | Self::FieldCount { .. } => {
                Code::InvalidInput
            }
            Self::CarriageReturn
            | Self::Nul { .. }
            | Self::NotUtf8 { .. }
            | Self::NotJson { .. }
            | Self::TornQuote => Code::ParseError,
        }
    }

    const fn suggestion(&self) -> &'static str {
        match self {
            #[cfg(feature = "arrow")]
            Self::RowTooLarge => "Name large content by path or URL.",
            #[cfg(feature = "arrow")]
            Self::Cell { .. } => "Change the cell, or leave out the row.",
            Self::NoInput { .. } => "Make the cells smaller, or nest them less.",
            Self::Empty => "Remove it, or write an input.",
            Self::CarriageReturn => "Write line feeds at the ends of the lines.",
            Self::TooLarge => "Split the row, or name large content by path or URL.",
            Self::Nul { .. } | Self::NotUtf8 { .. } => "Save the file as UTF-8 text.",
            Self::NotJson { .. } => "Write one JSON object per line, without line breaks inside it.",
            Self::NotAnInput { .. } => {
                "Write an object with the fields of the module's input, or one string."
            }
            Self::TornQuote => "Close the quote, and write a quote inside a field twice.",
            Self::FieldCount { .. } => {
                "Write as many fields as the header has, and quote fields with commas."
            }
        }
    }
}

impl RowError {
    /// Returns the error of the row's envelope. `name` is the name of the input.
    #[must_use]
    pub fn to_body(&self, name: &str) -> ErrorBody {
        let Self { location, kind } = self;
        let (unit, number) = location.parts();
        let details = serde_json::json!({ "input": name, unit: number });
        ErrorBody::new(kind.code(), format!("{name}, {self}"))
            .with_recoverable(false)
            .suggest(kind.suggestion())
            .with_details(Value::from(details))
    }
}

// Digests of modules and inputs.

/// The first 128 bits of a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of parts, each with its length.
    pub(crate) fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut digest = [0; 16];
        digest.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(digest)
    }
}

/// Returns a digest of the files of a module, for the description of a batch.
#[must_use]
pub fn digest_of_files(files: &[(String, Vec<u8>)]) -> String {
    let mut files: Vec<_> = files.iter().collect();
    files.sort();
    let parts = files.iter().flat_map(|(name, content)| [name.as_bytes(), content.as_slice()]);
    Digest::from_parts(parts).0.iter().map(|byte| format!("{byte:02x}")).collect()
}

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
            Ok(ParsedRow { input: Value::parse_bytes(text).unwrap(), carried: String::new() })
        });
        let input = || RowInput::new(RowLocation::Line(1), Ok(Bytes::from_static(b"1")), Arc::clone(&parser));
        drop(input());
        assert_eq!(parsed.load(Ordering::Relaxed), 0);
        let input = input();
        let number = |input: Result<&Value, &RowError>| input.unwrap().node().as_u64();
        assert_eq!((number(input.get()), number(input.get())), (Some(1), Some(1)));
        assert_eq!(number(input.into_result().as_ref().map(|row| &row.input)), Some(1));
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

    #[test]
    fn digest_depends_on_names_and_contents_only() {
        let file = |name: &str, content: &str| (name.to_owned(), content.as_bytes().to_vec());
        let digest = digest_of_files(&[file("a", "1"), file("b", "2")]);
        assert_eq!(digest, digest_of_files(&[file("b", "2"), file("a", "1")]));
        assert_eq!(digest.len(), 32);
        for others in [[file("a", "1"), file("b", "3")], [file("a", "1b"), file("", "2")]] {
            assert_ne!(digest, digest_of_files(&others));
        }
    }
}
