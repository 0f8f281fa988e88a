//! Rows in, checked answers out.
//!
//! * [`Source`] opens the input, and [`Rows`] are its rows as they are read.
//! * [`Row`] is a row of the input: its number, the input of a run or the reason why there is none, and a hash.
//! * [`Batch`] runs the rows at a [`Pace`], until the input ends or there is a reason to [`Stop`].
//! * A [`Sink`] receives each [`RowResult`].
//! * [`Journal`] stores each result, so that a batch continues: it has the [`Finished`] rows, and then the [`Results`].
//! * [`Output`] writes a file from the results: JSON Lines or CSV, and with the feature `arrow` Arrow IPC or Parquet.
//! * [`VendorBatch`] sends the rows as jobs to the batch interface of a vendor, and reads their answers.
//! * [`Progress`] says how far a batch is, and [`Summary`] what it did. [`plan`] says before what it will need.

#[cfg(feature = "arrow")]
mod arrays;
mod columns;
mod duplicates;
mod format;
mod jobs;
mod journal;
mod pace;
pub mod plan;
mod read;
mod row;
mod run;
mod sink;
mod summary;
mod via;
mod write;

#[cfg(feature = "arrow")]
pub use arrays::ArrayError;
#[cfg(feature = "arrow")]
pub use columns::RecordBuilder;
pub use columns::{Column, ColumnType, Columns};
pub use format::{Compression, Encoding, Format, delimiter_of};
pub use jobs::{Job, Jobs, VendorBatchError, VendorBatchProvider};
pub use journal::{
    Description, Difference, Finished, FinishedRow, Journal, JournalError, JournalPaths, JournalStatus,
    LeftOut, Lines, Order, ResultLine, Results, Resume,
};
pub use pace::{Concurrency, Pace};
pub use read::{AbsentMember, Carried, ColumnMap, ColumnsError, ReadError, RowReader, Rows, Source};
pub use row::{
    ParsedRow, Position, Row, RowError, RowErrorKind, RowHash, RowInput, RowLocation, RowParser, RowResult,
    digest_of_files,
};
pub use run::{Batch, RowFuture, Runner, View, run_input};
pub use sink::{LineSink, Sink, SinkError};
pub use summary::{MaxFailures, Progress, RowCounts, Stop, Summary, TokenCounts};
pub use via::VendorBatch;
pub use write::{CsvStyle, Output, WriteError};
