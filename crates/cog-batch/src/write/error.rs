use std::{
    io,
    path::{Path, PathBuf},
};

use cog_json::SyntaxError;

use crate::journal::{JournalError, suggestion_for_write};

/// An error of writing the output of a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The results cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The result of a row is not JSON.
    #[error("the result of row {row} is not JSON: {source}")]
    NotJson {
        /// The row.
        row: u64,
        /// The error of the parser.
        source: SyntaxError,
    },
    /// The data of the results has too many fields for columns.
    #[error("the data has more than {max} fields, too many for the columns of a CSV")]
    TooManyColumns {
        /// The maximum number.
        max: usize,
    },
    /// The results do not fit a table.
    #[cfg(feature = "arrow")]
    #[error("the results cannot be written as a table: {reason}")]
    Table {
        /// The reason.
        reason: String,
    },
}

#[cfg(feature = "arrow")]
impl From<arrow_schema::ArrowError> for WriteError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, source) => Self::Write(source),
            other => Self::Table { reason: other.to_string() },
        }
    }
}

#[cfg(feature = "arrow")]
impl From<parquet::errors::ParquetError> for WriteError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => Self::Write(*source),
                Err(other) => Self::Table { reason: other.to_string() },
            },
            other => Self::Table { reason: other.to_string() },
        }
    }
}

impl WriteError {
    /// Returns a suggestion how to solve the problem.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Journal(error) => error.suggestion(),
            Self::Write(source) | Self::File { source, .. } => suggestion_for_write(source.kind()),
            Self::NotJson { .. } => "Move the journal and the results away to start from the beginning.",
            Self::TooManyColumns { .. } => "Write JSON Lines.",
            #[cfg(feature = "arrow")]
            Self::Table { .. } => "Write JSON Lines.",
        }
    }

    /// Adds the path of the output.
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            Self::Write(source) => Self::File { path: path.to_owned(), source },
            other => other,
        }
    }
}
