//! Why a batch ends before its input does.

use std::{fmt, str::FromStr, time::Duration};

use cog_spec::ErrorBody;
use thiserror::Error;

use crate::{read::ReadError, sink::SinkError};

/// Why a batch ended before its input did.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Stop {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The cost has reached the limit.
    #[error("the batch has cost ${spent:.4}, and --max-cost is ${limit}")]
    MaxCost {
        /// The limit in US dollars.
        limit: f64,
        /// The cost of this start in US dollars.
        spent: f64,
    },
    /// The cost is limited, and no reply says what it costs.
    #[error("--max-cost is ${limit}, and the cost of the rows so far is unknown")]
    UnknownCost {
        /// The limit in US dollars.
        limit: f64,
    },
    /// Too many rows failed.
    #[error("{failed} of {done} rows have failed, and --max-failures is {limit}")]
    MaxFailures {
        /// The limit.
        limit: MaxFailures,
        /// The rows that failed.
        failed: u64,
        /// The rows that have ended.
        done: u64,
    },
    /// The provider failed many rows in a row.
    #[error("the provider failed {rows} rows in a row, the last with {}: {}", .error.code.as_str(), .error.message)]
    Provider {
        /// The number of rows.
        rows: usize,
        /// The last error.
        error: Box<ErrorBody>,
        /// Whether the rows have a result.
        has_results: bool,
    },
    /// The provider answered no row for a while.
    #[error("the provider has answered no row for {} s, the last error is {}: {}", .time.as_secs(), .error.code.as_str(), .error.message)]
    Unreachable {
        /// The time without an answer.
        time: Duration,
        /// The last error.
        error: Box<ErrorBody>,
    },
    /// A row that has a result has changed.
    #[error("row {row} of the input has changed since the batch began")]
    Changed {
        /// The row, from 0.
        row: u64,
    },
    /// The input cannot be read any further.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The results cannot be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl Stop {
    /// Returns the reason as a word for programs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::MaxCost { .. } => "max_cost",
            Self::UnknownCost { .. } => "unknown_cost",
            Self::MaxFailures { .. } => "max_failures",
            Self::Provider { .. } | Self::Unreachable { .. } => "provider",
            Self::Changed { .. } => "changed_input",
            Self::Read(_) => "read",
            Self::Sink(_) => "write",
        }
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Interrupted => None,
            Self::MaxCost { .. } => Some("The same command continues, and may cost as much again: --max-cost is for one start.".to_owned()),
            Self::UnknownCost { .. } => Some(
                "The provider reports no tokens, or another model than the one with the price. Limit the rows with --sample."
                    .to_owned(),
            ),
            Self::MaxFailures { .. } => {
                Some("See the errors of the failed rows; --retry-failed runs them again.".to_owned())
            }
            Self::Provider { error, has_results: true, .. } => {
                Some(with_next(error, "--retry-failed runs the failed rows again."))
            }
            Self::Provider { error, .. } | Self::Unreachable { error, .. } => {
                Some(with_next(error, "The same command continues, and runs these rows again."))
            }
            Self::Changed { .. } => Some(
                "Restore the input, continue with --allow-changes, or start a new batch with another output."
                    .to_owned(),
            ),
            Self::Read(error) => Some(error.suggestion()),
            Self::Sink(error) => Some(error.suggestion()),
        }
    }
}

/// Returns the suggestion of an error, and what to do next.
fn with_next(error: &ErrorBody, next: &str) -> String {
    error.suggestion.as_deref().map_or_else(|| next.to_owned(), |text| format!("{text} {next}"))
}

/// How many rows may fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxFailures {
    /// This number.
    Rows(u64),
    /// This share of the rows that have ended, in percent.
    Percent(f64),
}

/// The rows that must have ended before a share of failures counts.
const MIN_ROWS: u64 = 100;

impl MaxFailures {
    /// Returns whether more rows failed than may fail.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
    pub fn is_exceeded(self, failed: u64, done: u64) -> bool {
        match self {
            Self::Rows(max) => failed > max,
            Self::Percent(max) => done >= MIN_ROWS && failed as f64 * 100.0 > max * done as f64,
        }
    }
}

impl FromStr for MaxFailures {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|it| (0.0..=100.0).contains(it)).map(Self::Percent),
            None => text.parse().ok().map(Self::Rows),
        };
        number.ok_or("not a number of rows, or a percentage such as 5%")
    }
}

impl fmt::Display for MaxFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_limited_by_number_or_share() {
        let limit = |text: &str| text.parse::<MaxFailures>().unwrap();
        assert!(!limit("3").is_exceeded(3, 3) && limit("3").is_exceeded(4, 4));
        assert!(limit("0").is_exceeded(1, 1));
        assert!(!limit("5%").is_exceeded(50, 99), "too few rows");
        assert!(!limit("5%").is_exceeded(5, 100) && limit("5%").is_exceeded(6, 100));
        for text in ["", "-1", "101%", "NaN%", "%", "many"] {
            assert!(text.parse::<MaxFailures>().is_err(), "{text}");
        }
        assert_eq!((limit("3").to_string(), limit("2.5%").to_string()), ("3".to_owned(), "2.5%".to_owned()));
    }
}
