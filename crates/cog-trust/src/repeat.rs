//! Cases that are run several times.

use crate::Rate;

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
