//! Cases that are run several times.

use crate::{
    Rate,
    interval::{self, Interval},
};

/// The rate at which runs are right, over several cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassRate {
    /// The mean over the cases of the share of right runs.
    pub share: f64,
    /// The number of cases.
    pub cases: u64,
    /// The exact interval. The runs of a case are one case: repeats alone do not make it narrower.
    pub interval: Interval,
}

/// Returns the rate at which the runs of these cases are right, with its exact interval for `confidence`. Cases without a run say
/// nothing; without any other case there is no rate.
///
/// ```
/// use cog_trust::{Rate, repeat};
///
/// let cases = [Rate::new(4, 5).expect("4 of 5"), Rate::new(5, 5).expect("5 of 5")];
/// let rate = repeat::pass_rate(&cases, 0.95).expect("two cases");
/// assert_eq!((rate.share, rate.cases), (0.9, 2));
/// assert!(rate.interval.low < 0.2 && rate.interval.high > 0.9);
/// ```
pub fn pass_rate(cases: &[Rate], confidence: f64) -> Option<PassRate> {
    let shares: Vec<f64> = cases.iter().filter_map(|rate| rate.share()).collect();
    let count = shares.len() as f64;
    let right: f64 = shares.iter().sum();
    let rate = PassRate {
        share: right / count,
        cases: shares.len() as u64,
        interval: interval::exact_of(right, count, confidence),
    };
    (!shares.is_empty()).then_some(rate)
}

/// Returns pass^k: how often `k` runs of a case are all right, estimated from the runs of each case and averaged over the cases.
/// Cases with fewer than `k` runs say nothing about it. Without any other case there is no value.
///
/// ```
/// use cog_trust::{Rate, repeat};
///
/// let cases = [Rate::new(4, 5).expect("4 of 5"), Rate::new(5, 5).expect("5 of 5")];
/// assert_eq!(repeat::pass_power(&cases, 1), Some(0.9));
/// assert_eq!(repeat::pass_power(&cases, 2), Some(0.8));
/// assert_eq!(repeat::pass_power(&cases, 6), None);
/// ```
pub fn pass_power(cases: &[Rate], k: u64) -> Option<f64> {
    let counted = cases.iter().filter(|rate| rate.cases() >= k.max(1));
    let (sum, count) =
        counted.fold((0.0, 0_u64), |(sum, count), rate| (sum + all_right(*rate, k), count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Returns the share of choices of `k` runs in which all are right.
fn all_right(rate: Rate, k: u64) -> f64 {
    if rate.right() < k {
        return 0.0;
    }
    (0..k).map(|taken| (rate.right() - taken) as f64 / (rate.cases() - taken) as f64).product()
}
