//! Rows in, checked answers out.
//!
//! * [`Row`] is a row of the input: its number, the input of a run or the reason why there is none, and a hash.
//! * [`Journal`] stores each result as it finishes, so that a batch continues after any interruption. It returns the
//!   [`Finished`] rows when it is opened, and the [`Results`] when it is closed.

mod journal;
mod results;
mod row;

pub use journal::{
    Description, Difference, Finished, FinishedRow, Journal, JournalError, JournalPaths, Resume,
};
pub use results::{Lines, Order, ResultLine, Results};
pub use row::{Row, RowHash};
