//! Ratios of times with their limits. Both sides run alternately, and the best run of each counts.

use std::time::{Duration, Instant};

/// The duration of a comparison.
const LENGTH: Duration = Duration::from_secs(2);

/// Prints a ratio with its maximum, and returns whether it is within it.
#[expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]
pub fn limit(max: f64, what: &str, ratio: f64) -> bool {
    let within = ratio <= max;
    println!("{ratio:6.2}  (at most {max:4.1}{})  {what}", if within { "" } else { ", EXCEEDED" });
    within
}

/// Returns the best time of `ours` over the best time of `theirs`.
#[expect(clippy::print_stdout, reason = "the table is what a benchmark is for")]
pub fn ratio(ours: impl Fn(), theirs: impl Fn()) -> f64 {
    let mut one = Duration::MAX;
    let mut other = Duration::MAX;
    let end = Instant::now() + LENGTH;
    while Instant::now() < end {
        one = one.min(time(&ours));
        other = other.min(time(&theirs));
    }
    println!("        {one:?} against {other:?}");
    one.as_secs_f64() / other.as_secs_f64()
}

/// Returns the time of one call.
pub fn time(run: &impl Fn()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}
