//! How a batch ended: why, and what it did.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    str::FromStr,
    time::{Duration, Instant},
};

use cog_spec::{Amount, Envelope, ErrorBody, Usage};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::{LeftOut, read::ReadError, sink::SinkError};

/// What a batch did, since it was started.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The rows.
    pub rows: RowCounts,
    /// The failed rows by the code of their error.
    pub failures: BTreeMap<String, u64>,
    /// The tokens of all runs.
    pub tokens: TokenCounts,
    /// The cost in US dollars; none if a price is unknown.
    #[serde(rename = "cost_usd")]
    pub cost: Option<f64>,
    /// Whether the batch ended after the rows of its sample.
    pub is_sample: bool,
    /// The duration.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub elapsed: Duration,
    /// Why the batch ended before its input did.
    #[serde(serialize_with = "reason")]
    pub stopped: Option<Stop>,
    /// The members that `--id` and `--keep` name and that no row has had.
    #[serde(rename = "absent_columns", skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    #[serde(skip)]
    pub(crate) costs: Costs,
    /// What the batch no longer has of the results of the journal ([`Results::leave_out`](crate::Results::leave_out)).
    #[serde(skip)]
    pub left_out: LeftOut,
}

/// The lost runs after which their cost counts as unknown, if no run has one.
const MAX_LOST: u64 = 5;

/// What the runs have cost.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    total: Amount,
    /// The runs that have a cost. Answers from a cache have none.
    known: u64,
    /// The runs whose cost is not known, because the reply says nothing about its tokens.
    unknown: u64,
    /// The runs that were cut or took too long, whose tokens nobody has counted.
    lost: u64,
}

/// The rows of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowCounts {
    /// The rows that were read.
    pub read: u64,
    /// The rows whose run succeeded.
    pub ok: u64,
    /// The rows that failed.
    pub failed: u64,
    /// The rows that had a result when the batch was started.
    pub earlier: u64,
    /// The rows among them that failed.
    pub earlier_failed: u64,
    /// The rows that ran because the row at their position was another one before.
    pub changed: u64,
    /// The rows that `--where` excluded.
    pub excluded: u64,
    /// The rows that got the result of an earlier row with an equal input; none of them ran.
    pub duplicates: u64,
    /// The runs that were repeated, because the provider was overloaded or did not answer.
    pub repeated: u64,
    /// The failed rows that the provider did not answer. They run again when the batch continues.
    pub unanswered: u64,
}

/// The tokens of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenCounts {
    /// The tokens of inputs.
    pub input: u64,
    /// The tokens of inputs that were read from the provider's cache.
    pub cached_input: u64,
    /// The tokens of outputs.
    pub output: u64,
}

impl RowCounts {
    /// Returns the rows that have ended since the start.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.ok + self.failed
    }
}

impl Summary {
    /// Adds the result of a row.
    pub(crate) fn add(&mut self, envelope: &Envelope) {
        match envelope.error() {
            None => self.rows.ok += 1,
            Some(error) => {
                self.rows.failed += 1;
                *self.failures.entry(error.code.as_str().to_owned()).or_default() += 1;
            }
        }
    }

    /// Adds the tokens of a run, also of one that is repeated.
    pub(crate) fn spend(&mut self, usage: &Usage) {
        self.tokens.input += usage.input_tokens;
        self.tokens.cached_input += usage.cached_input_tokens.unwrap_or_default();
        self.tokens.output += usage.output_tokens;
        match usage.cost {
            Some(_) if usage.total() == 0 => {}
            Some(cost) => {
                self.costs.total = self.costs.total.plus(cost.amount);
                self.costs.known += 1;
            }
            None => self.costs.unknown += 1,
        }
        self.cost = (self.costs.unknown + self.costs.lost == 0).then(|| self.costs.total.as_f64());
    }

    /// Adds a run that was cut before the vendor said what it costs.
    pub(crate) fn spend_lost(&mut self) {
        self.costs.lost += 1;
        self.cost = None;
    }

    /// Adds a run that was answered without saying how many tokens it took.
    pub(crate) fn spend_unknown(&mut self) {
        self.costs.unknown += 1;
        self.cost = None;
    }
}

impl Costs {
    /// Whether the model has answered, and no cost of a run is known.
    pub(crate) fn are_unknown(&self) -> bool {
        self.known == 0 && (self.unknown > 0 || self.lost >= MAX_LOST)
    }

    /// Returns what was spent, and what it will be with this many further runs. Runs of an unknown cost, and further ones, count
    /// as much as the others on average. None if nothing is known.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn estimate(&self, further: usize) -> Option<(f64, f64)> {
        if self.known == 0 {
            return None;
        }
        let total = self.total.as_f64();
        let each = total / self.known as f64;
        let spent = total + each * (self.unknown + self.lost) as f64;
        Some((spent, spent + each * further as f64))
    }
}

fn seconds<S: Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0)
}

fn reason<S: Serializer>(stop: &Option<Stop>, serializer: S) -> Result<S::Ok, S::Error> {
    stop.as_ref().map(Stop::reason).serialize(serializer)
}

// How far a batch is.

/// How far a batch is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What the batch did so far.
    pub summary: &'a Summary,
    /// The number of rows in the input: exact once it is read, before that estimated by its length; none if it is unknown.
    pub total: Option<u64>,
    /// Whether the whole input is read.
    pub is_read: bool,
    /// The rows that are running.
    pub running: usize,
    /// The rows that end per second.
    pub per_second: f64,
    /// The cost of the whole batch since its start in US dollars, as expected now.
    pub expected_cost: Option<f64>,
    /// The time that is left.
    pub left: Option<Duration>,
    /// Why no row starts now, and what happens next; none if rows start.
    pub trouble: Option<String>,
    /// The time until the vendor accepts requests again.
    pub pause: Option<Duration>,
}

/// The time over which the speed is measured.
const WINDOW: Duration = Duration::from_secs(30);
/// The minimum time between two measurements.
const STEP: Duration = Duration::from_millis(500);

/// Measures the speed of a batch.
#[derive(Debug)]
pub(crate) struct Speed(VecDeque<(Instant, u64)>);

impl Speed {
    pub(crate) fn new(now: Instant) -> Self {
        Self(VecDeque::from([(now, 0)]))
    }

    /// Returns the rows that ended per second recently.
    #[expect(clippy::cast_precision_loss, reason = "a speed, not a count")]
    pub(crate) fn measure(&mut self, done: u64, now: Instant) -> f64 {
        while self.0.len() > 1 && self.0.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.0.pop_front();
        }
        let speed = self.0.front().map_or(0.0, |(at, before)| {
            let seconds = now.duration_since(*at).as_secs_f64();
            if seconds > 0.0 { (done - before) as f64 / seconds } else { 0.0 }
        });
        if self.0.back().is_none_or(|(at, _)| now.duration_since(*at) >= STEP) {
            self.0.push_back((now, done));
        }
        speed
    }
}

// Why a batch ends before its input does.

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
    fn speed_is_that_of_the_last_half_minute() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut speed = Speed::new(start);
        assert_eq!(speed.measure(0, start), 0.0);
        for second in 1..=60 {
            assert_eq!(speed.measure(second * 10, at(second)), 10.0);
        }
        assert!(speed.measure(600, at(75)) < 6.0, "nothing ended for a while");
        assert!(speed.0.len() < 70);
    }

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
