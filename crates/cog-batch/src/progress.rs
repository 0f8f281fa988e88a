//! How far a batch is.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::Summary;

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
}
