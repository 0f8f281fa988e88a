//! The run of a row.

use std::time::{Duration, Instant};

use cog_run::RunInput;
use cog_spec::{Code, Envelope, ErrorBody};

use super::{Batch, Running};
use crate::{RowHash, Sink, Stop, digest::Digest, jobs::Slot};

/// How often a row runs while the provider is overloaded.
const MAX_TRIES: u32 = 5;
/// The first pause when the vendor requests none; it doubles with each try.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A row that runs.
pub(super) struct Task {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    /// The digest of the input, if rows with an equal input get the result.
    pub(super) digest: Option<Digest>,
    pub(super) input: RunInput,
    /// How often it ran before.
    pub(super) tries: u32,
}

/// A run that has ended.
pub(super) struct Ended {
    pub(super) task: Task,
    pub(super) envelope: Envelope,
    pub(super) latency: Duration,
    pub(super) reserved: f64,
}

impl Task {
    pub(super) async fn run(self, batch: &Batch, reserved: f64) -> Ended {
        let started = Instant::now();
        let envelope = match &batch.runner {
            Some(runner) => runner.run(self.row, self.hash, &self.input).await,
            None => self.run_here(batch).await,
        };
        Ended { task: self, envelope, latency: started.elapsed(), reserved }
    }

    async fn run_here(&self, batch: &Batch) -> Envelope {
        match batch.prepare(self.input.clone()) {
            Ok(chunks) if batch.via.is_some() => Slot::answered(self.row, self.hash).run(chunks.fold()).await,
            Ok(chunks) => chunks.fold().await,
            Err(refused) => *refused,
        }
    }

    pub(super) fn may_repeat(&self) -> bool {
        self.tries + 1 < MAX_TRIES
    }

    /// Returns the pause before the next try.
    pub(super) fn wait(&self) -> Duration {
        FIRST_WAIT * 2_u32.pow(self.tries.min(MAX_TRIES))
    }

    pub(super) fn again(self) -> Self {
        Self { tries: self.tries + 1, ..self }
    }
}

// What the error of a row says about the provider.

/// What an error says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The budget refused the run.
    Budget,
    /// The provider accepts no requests for a while, with the wait that it requests.
    Overloaded(Option<Duration>),
    /// The provider failed.
    Provider,
    /// The row failed.
    Row,
}

impl Failure {
    pub(super) fn from_error(error: &ErrorBody) -> Self {
        let details = error.details.as_ref();
        let reason = details.and_then(|details| details.get("reason")?.as_str());
        if matches!(reason, Some("budget" | "unknown_price")) {
            return Self::Budget;
        }
        let wait = details.and_then(|details| details.get("retry_after_ms")?.as_u64());
        let wait = wait.map(Duration::from_millis);
        let is_limited = error.code == Code::RateLimited.into();
        let is_unavailable = error.code == Code::ProviderUnavailable.into();
        match error.recoverable {
            Some(true) if is_limited && reason != Some("quota") => Self::Overloaded(wait),
            Some(true) if is_unavailable && (wait.is_some() || reason == Some("unavailable")) => {
                Self::Overloaded(wait)
            }
            _ if is_limited || is_unavailable => Self::Provider,
            _ => Self::Row,
        }
    }
}

// Results of rows that the provider failed, which are held until it is known whether the batch goes on.

/// The failures of the provider in a row that end a batch.
const MAX_FAILURES: usize = 20;

impl<S: Sink> Running<'_, S> {
    /// Holds the result of a row that the provider failed. Many in a row stop the batch: the provider is down, or its key is
    /// wrong, and every row would fail.
    pub(super) async fn hold(&mut self, task: Task, envelope: Envelope) {
        self.held.push((task, envelope));
        if self.has_too_many_failures() {
            return self.release().await;
        }
        let error = self.held.last().and_then(|(_, envelope)| envelope.error());
        if let Some(error) = error.filter(|_| self.held.len() >= MAX_FAILURES) {
            let stop = Stop::Provider {
                rows: self.held.len(),
                error: Box::new(error.clone()),
                has_results: self.batch.runner.is_some(),
            };
            self.stop.get_or_insert(stop);
        }
    }

    /// Writes the results that are held. If the provider or the user has stopped the batch, those rows have no result, so that
    /// they run when the batch continues. Workers have stored their results already.
    pub(super) async fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        let is_stopped =
            matches!(self.stop, Some(Stop::Provider { .. } | Stop::Unreachable { .. } | Stop::Interrupted));
        if !is_stopped || self.batch.runner.is_some() {
            for (task, envelope) in held {
                self.finish(&task, &envelope).await;
            }
        }
    }

    /// Whether too many rows have failed, with those that are held.
    fn has_too_many_failures(&self) -> bool {
        let rows = self.summary.rows;
        let held = self.held.len() as u64;
        let limit = self.batch.max_failures;
        limit.is_some_and(|limit| limit.is_exceeded(rows.failed + held, rows.done() + held))
    }
}

// A provider that answers no row for a while.

/// The least time without an answer that ends a batch.
const LONG: Duration = Duration::from_secs(30);
/// The least number of failures that ends a batch.
const MANY: u32 = 5;

/// The failures since the last answer. A provider that limits the rate, or rejects a row, answers.
#[derive(Debug, Default)]
pub(super) struct Outage {
    failures: u32,
    /// The time of the first failure.
    since: Option<Instant>,
    error: Option<ErrorBody>,
}

impl Outage {
    /// Records how a row ended, and what its error says about the provider.
    pub(super) fn record(&mut self, failure: Option<Failure>, error: Option<&ErrorBody>, now: Instant) {
        let is_down = matches!(failure, Some(Failure::Overloaded(_)));
        match error.filter(|error| is_down && error.code == Code::ProviderUnavailable.into()) {
            None => *self = Self::default(),
            Some(error) => {
                self.failures = self.failures.saturating_add(1);
                self.since.get_or_insert(now);
                // One that was not sent, because others failed, does not say why they did.
                if self.error.is_none() || is_cause(error) {
                    self.error = Some(error.clone());
                }
            }
        }
    }

    /// Returns the time without an answer and the last error, if the batch should end: the provider is down, or its address is
    /// wrong.
    pub(super) fn end(&self, now: Instant) -> Option<(Duration, ErrorBody)> {
        let time = now.duration_since(self.since?);
        (self.failures >= MANY && time >= LONG).then_some((time, self.error.clone()?))
    }

    /// Returns the last error.
    pub(super) fn error(&self) -> Option<&ErrorBody> {
        self.error.as_ref()
    }
}

/// Whether an error says why the provider cannot be reached.
fn is_cause(error: &ErrorBody) -> bool {
    error.details.as_ref().and_then(|details| details.get("reason")?.as_str()) == Some("unavailable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_ends_after_many_failures_over_a_long_time_without_an_answer() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let unavailable = ErrorBody::new(Code::ProviderUnavailable, "no connection");
        let limited = ErrorBody::new(Code::RateLimited, "slow down");
        let down = Some(Failure::Overloaded(None));
        let mut outage = Outage::default();
        for (seconds, ends) in [(0, false), (20, false), (31, false), (40, false), (50, true)] {
            let now = start + seconds * second;
            outage.record(down, Some(&unavailable), now);
            assert_eq!(outage.end(now).is_some(), ends, "{seconds} s");
        }
        for (failure, answer) in [
            (None, None),
            (down, Some(&limited)),
            (Some(Failure::Provider), Some(&unavailable)), // a rejected request has the same code
        ] {
            outage.record(failure, answer, start + 60 * second);
            assert!(outage.end(start + 90 * second).is_none());
            (60..80).for_each(|at| outage.record(down, Some(&unavailable), start + at * second));
            assert!(outage.end(start + 80 * second).is_none(), "{:?}", outage.error());
        }
    }
}
