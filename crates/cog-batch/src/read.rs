//! Readers of rows, one file per format.

#[cfg(feature = "arrow")]
mod arrow;
mod columns;
mod csv;
mod error;
mod json_lines;
mod lines;
#[cfg(feature = "arrow")]
mod parquet;
mod source;
#[cfg(feature = "arrow")]
mod table;

pub use self::{
    columns::{ColumnMap, ColumnsError},
    error::ReadError,
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
    fn read(&mut self, rows: &mut Vec<Row>) -> std::io::Result<bool>;

    /// Returns the bytes that were read and that no row contains yet.
    fn buffered(&self) -> usize {
        0
    }
}
