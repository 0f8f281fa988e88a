//! Runs the parts of composed modules (docs/spec/composition.md).
//!
//! [`Flows`] is the composer of a runtime. For a composed module it returns a [`Composed`], whose execution is a loop over
//! the calls in flight:
//!
//! ```text
//! Plan → tasks → calls → runs of parts → Ended → Results → the next tasks … → PartsAnswer
//! ```

mod answer;
mod arguments;
mod call;
mod composed;
mod error;
mod execution;
mod flows;
mod key;
mod module;
mod part;
mod reports;
mod schedule;
mod texts;

pub use self::flows::Flows;
