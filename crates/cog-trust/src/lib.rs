//! Statistics of measured answers: how often a module was right, how sure that figure is, whether one way of asking is better
//! than another, and what a stated confidence is worth.
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
//!
//! A [`Sample`] holds answers with the confidence that they state and whether they are right. From it come scores, the map to a
//! probability, and the threshold for a promise:
//!
//! ```
//! use cog_trust::{Gate, Goal, Run, Sample};
//!
//! let runs: Vec<Run> = (0..30).filter_map(|case| Run::new(case, 0.95, true)).collect();
//! let sample = Sample::new(&runs);
//! let goal = Goal::new(0.9, 0.1).expect("between 0 and 1");
//! assert_eq!(goal.gate(&sample), Gate::Threshold { threshold: 0.95, accepted: 30, right: 30 });
//! assert!(sample.map().probability(0.95) > 0.95);
//! ```

mod combine;
mod coverage;
pub mod drift;
mod gate;
pub mod interval;
mod map;
pub mod paired;
mod rate;
mod reliability;
pub mod repeat;
mod sample;
mod score;

#[cfg(test)]
mod tests;

pub use cog_spec::{EvidenceMap, LogisticMap};
pub use combine::{Combination, Observation, Trial, combine};
pub use coverage::Coverage;
pub use gate::{Gate, Goal};
pub use interval::Interval;
pub use rate::Rate;
pub use reliability::{Bin, CalibrationError};
pub use sample::{Run, Sample};
pub use score::{Auroc, Brier};
