//! Rows in, checked answers out.
//!
//! * [`Row`] is a row of the input: its number, the input of a run or the reason why there is none, and a hash.
//! * [`Journal`] stores each result as it finishes, so that a batch continues after any interruption. It returns the
//!   [`Finished`] rows when it is opened, and the [`Results`] when it is closed.
//! * [`Output`] writes a file from the results: JSON Lines or CSV.
//! * `nats` (feature): jobs in NATS JetStream, and the workers that run them.

#[cfg(all(feature = "arrow", test))]
mod arrays;
#[cfg(feature = "arrow")]
mod columns;
mod journal;
#[cfg(feature = "nats")]
pub mod nats;
mod results;
mod row;
mod write;

#[cfg(feature = "arrow")]
pub use columns::{Column, ColumnType, Columns, RecordBuilder};
pub use journal::{
    Description, Difference, Finished, FinishedRow, Journal, JournalError, JournalPaths, Resume,
};
pub use results::{Lines, Order, ResultLine, Results};
pub use row::{Row, RowHash};
pub use write::{Format, Output, WriteError};
