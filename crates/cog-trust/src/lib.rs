//! Statistics of measured answers: how often a module was right, how sure that figure is, and whether one way of
//! asking is better than another.
//!
//! This crate has no clocks, files or sockets. The special functions come from `statrs`.
//!
//! ```
//! use cog_trust::{Rate, interval, paired};
//!
//! let rate = Rate::new(20, 20).expect("20 of 20");
//! let interval = interval::exact(rate, 0.95);
//! assert_eq!(format!("{:.3} to {:.3}", interval.low, interval.high), "0.832 to 1.000");
//!
//! // Of the cases on which two forms differ, one form has 9 right and the other 1.
//! assert_eq!(format!("{:.4}", paired::mcnemar(9, 1)), "0.0215");
//! ```

pub mod interval;
pub mod paired;
mod rate;

pub use rate::Rate;
