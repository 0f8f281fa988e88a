//! Ratios of times with their limits. Both sides run alternately, and the best run of each counts.

#![expect(clippy::print_stdout, reason = "the table is what these programs are for")]

use std::time::{Duration, Instant};

/// Prints a ratio with its limit, and returns whether it is within it.
pub(crate) fn limit(bound: f64, what: &str, measure: impl Fn() -> f64) -> bool {
    let ratio = measure();
    let within = ratio <= bound;
    println!("{ratio:6.2}  (at most {bound:4.1}{})  {what}", if within { "" } else { ", EXCEEDED" });
    within
}

/// The best time of `ours` over the best time of `theirs`.
pub(crate) fn ratio(ours: impl Fn(), theirs: impl Fn()) -> f64 {
    let (mut one, mut other) = (Duration::MAX, Duration::MAX);
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        one = one.min(time(&ours));
        other = other.min(time(&theirs));
    }
    println!("        {one:?} against {other:?}");
    one.as_secs_f64() / other.as_secs_f64()
}

fn time(run: &impl Fn()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}
