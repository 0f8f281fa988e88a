//! Rows in, checked answers out.
//!
//! * [`Row`] is a row of the input: its number, the input of a run or the reason why there is none, and a hash.

mod row;

pub use row::{Row, RowHash};
