//! Rows that cannot be read.

use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use thiserror::Error;

/// The maximum length of a line or a CSV record, in bytes.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} {}: {kind}", place.parts().0, place.parts().1)]
pub struct RowError {
    /// Where it is in the input.
    pub place: RowLocation,
    /// What is wrong with it.
    pub kind: RowErrorKind,
}

/// The place of a row.
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
    fn parts(self) -> (&'static str, u64) {
        match self {
            Self::Line(line) => ("line", line),
            Self::Row(row) => ("row", row),
        }
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowErrorKind {
    /// The line is empty.
    #[error("the line is empty")]
    Empty,
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
            Self::Nul { .. } | Self::NotUtf8 { .. } | Self::NotJson { .. } | Self::TornQuote => {
                Code::ParseError
            }
        }
    }

    const fn suggestion(&self) -> &'static str {
        match self {
            #[cfg(feature = "arrow")]
            Self::RowTooLarge => "Name large content by path or URL.",
            #[cfg(feature = "arrow")]
            Self::Cell { .. } => "Change the cell, or leave out the row.",
            Self::NoInput { .. } => "Make the cells smaller, or nest them less.",
            Self::Empty => "Remove the line, or write an input on it.",
            Self::TooLarge => "Split the row, or name large content by path or URL.",
            Self::Nul { .. } | Self::NotUtf8 { .. } => "Save the file as UTF-8 text.",
            Self::NotJson { .. } => "Write one JSON object per line, without line breaks inside it.",
            Self::NotAnInput { .. } => {
                "Write an object with the fields of the module's input, or one text in quotes."
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
        let Self { place, kind } = self;
        let (unit, number) = place.parts();
        let details = serde_json::json!({ "input": name, unit: number });
        ErrorBody::new(kind.code(), format!("{name}, {self}"))
            .with_recoverable(false)
            .suggest(kind.suggestion())
            .with_details(Value::from(details))
    }
}
