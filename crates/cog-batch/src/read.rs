//! Readers of rows, one file per format.

#[cfg(feature = "arrow")]
mod arrow;
mod columns;
mod csv;
mod json;
#[cfg(feature = "arrow")]
mod parquet;
mod source;
#[cfg(feature = "arrow")]
mod table;
mod text;

use std::io;

use thiserror::Error;

pub use self::{
    columns::{AbsentMember, Carried, ColumnMap, ColumnsError},
    source::{Rows, Source},
};
use crate::Row;

/// Reads the rows of an input, on a thread that may block.
pub trait RowReader: Send {
    /// Adds the rows that can be read without waiting for more input, at least one unless the input has ended. Returns
    /// whether there may be more.
    ///
    /// # Errors
    /// The input cannot be read any further. A row that cannot be read is a row with an error.
    fn read(&mut self, rows: &mut Vec<Row>) -> io::Result<bool>;

    /// Returns the bytes that were read and that no row contains yet.
    fn buffered(&self) -> usize {
        0
    }
}

/// Why an input cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read {name}: {source}")]
    Io {
        /// The name of the input.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("cannot read {name}: it is a directory")]
    Directory {
        /// The name of the input.
        name: String,
    },
    /// The input is not a JSON array.
    #[error("cannot read {name}: it is not a JSON array")]
    NotAnArray {
        /// The name of the input.
        name: String,
    },
    /// The content is not what its format requires.
    #[cfg(feature = "arrow")]
    #[error("cannot read {name} as {format}: {reason}")]
    NotATable {
        /// The name of the input.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The columns do not fit the module.
    #[error("{name}: {source}")]
    Columns {
        /// The name of the input.
        name: String,
        /// The cause.
        source: ColumnsError,
    },
}

impl ReadError {
    /// Returns what to do about it.
    #[must_use]
    pub fn suggestion(&self) -> String {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "Check the file name and the directory.".to_owned()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "Write the file again: it is damaged or incomplete. --encoding names the encoding of a text.".to_owned()
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::Unsupported => {
                "Decompress it first. A file in .gz or .zst is read as it is.".to_owned()
            }
            Self::Io { .. } => {
                "Check that the file exists and that you have permission to read it.".to_owned()
            }
            Self::Directory { .. } => "Name a file, or `-` for stdin.".to_owned(),
            Self::NotAnArray { .. } => "If each line is a JSON value, use --format jsonl.".to_owned(),
            #[cfg(feature = "arrow")]
            Self::NotATable { .. } => {
                "Check the file, or name its format with --format. Parquet must be a file that is complete and not encrypted."
                    .to_owned()
            }
            Self::Columns { source, .. } => source.suggestion(),
        }
    }
}
