//! A provider that answers no row for a while.

use std::time::{Duration, Instant};

use cog_spec::{Code, ErrorBody};

use super::failure::Failure;

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
        let (start, second) = (Instant::now(), Duration::from_secs(1));
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
