//! Whether the scores of recent answers have another distribution than the scores of the calibration cases.

use cog_spec::ScoreCount;

/// The largest product of two sample sizes for which the exact distribution is computed.
const MAX_EXACT: u64 = 10_000_000;

/// The result of the Kolmogorov–Smirnov test of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The largest distance between the two distribution functions, from 0 to 1.
    pub distance: f64,
    /// The probability of such a distance, or a larger one, between two samples of the same source. Where answers have the same
    /// score, the true probability is smaller.
    pub p_value: f64,
}

/// Compares two samples, each from the highest score to the lowest. `None` if one is empty.
///
/// ```
/// use cog_spec::ScoreCount;
///
/// let high = ScoreCount { score: 0.9, cases: 3, right: 0 };
/// let low = ScoreCount { score: 0.5, ..high };
/// let drift = cog_trust::drift::compare(&[high], &[low]).expect("two samples");
/// // 2 of the 20 ways to order six answers separate them.
/// assert_eq!(drift.distance, 1.0);
/// assert!((drift.p_value - 0.1).abs() < 1e-12);
/// ```
pub fn compare(one: &[ScoreCount], other: &[ScoreCount]) -> Option<Drift> {
    let total = |scores: &[ScoreCount]| scores.iter().map(|count| count.cases).sum::<u64>();
    let (n, m) = (total(one), total(other));
    if n == 0 || m == 0 {
        return None;
    }
    let steps = largest_steps(one, other, n, m);
    let distance = steps as f64 / (n as f64 * m as f64);
    let p_value = match n.checked_mul(m) {
        Some(product) if product <= MAX_EXACT => exact(steps, n, m),
        _ => asymptotic(distance, n as f64 * m as f64 / (n as f64 + m as f64)),
    };
    Some(Drift { distance, p_value: p_value.clamp(0.0, 1.0) })
}

/// Returns the largest distance between the distribution functions, times `n * m`, which is a whole number.
fn largest_steps(one: &[ScoreCount], other: &[ScoreCount], n: u64, m: u64) -> u128 {
    let mut one = one.iter().peekable();
    let mut other = other.iter().peekable();
    let mut seen = [0_u64; 2];
    let mut largest = 0;
    loop {
        let next = |scores: Option<&&ScoreCount>| scores.map_or(f64::NEG_INFINITY, |count| count.score);
        let score = next(one.peek()).max(next(other.peek()));
        if score == f64::NEG_INFINITY {
            return largest;
        }
        let [of_one, of_other] = &mut seen;
        // Equal scores step together, or the order in which they are read would count.
        *of_one += one.next_if(|count| count.score == score).map_or(0, |count| count.cases);
        *of_other += other.next_if(|count| count.score == score).map_or(0, |count| count.cases);
        let at = [u128::from(*of_one) * u128::from(m), u128::from(*of_other) * u128::from(n)];
        let [first, second] = at;
        largest = largest.max(first.abs_diff(second));
    }
}

/// Returns the share of the orders of all answers in which the distance is reached: the paths over a grid of `n` by `m` that leave
/// the band around its diagonal.
fn exact(steps: u128, n: u64, m: u64) -> f64 {
    // The share of the paths to (i, j) that have stayed inside, for each j of one row.
    let mut row = vec![0.0; m as usize + 1];
    for i in 0..=n {
        let mut left = 0.0;
        for (j, share) in (0..=m).zip(row.iter_mut()) {
            let is_inside = (u128::from(i) * u128::from(m)).abs_diff(u128::from(j) * u128::from(n)) < steps;
            let length = (i + j) as f64;
            *share = match (is_inside, i + j) {
                (false, _) => 0.0,
                (true, 0) => 1.0,
                (true, _) => (*share * i as f64 + left * j as f64) / length,
            };
            left = *share;
        }
    }
    1.0 - row.last().copied().unwrap_or_default()
}

/// Returns Kolmogorov's limit for large samples.
fn asymptotic(distance: f64, size: f64) -> f64 {
    let z = 2.0 * size * distance * distance;
    let mut sum = 0.0;
    for k in 1..=100_i32 {
        let term = (-z * f64::from(k * k)).exp();
        sum += if k % 2 == 1 { term } else { -term };
        if term < 1e-17 {
            return 2.0 * sum;
        }
    }
    1.0 // the distance is 0 or nearly so
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scores(values: &[u32]) -> Vec<ScoreCount> {
        let mut values = values.to_vec();
        values.sort_unstable_by(|one, other| other.cmp(one));
        let each = values.chunk_by(|one, other| one == other);
        each.map(|group| ScoreCount {
            score: f64::from(group[0]) / 100.0,
            cases: group.len() as u64,
            right: 0,
        })
        .collect()
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        assert_eq!(compare(&[], &scores(&[1])), None);
        assert_eq!(compare(&scores(&[1]), &[]), None);
        assert_eq!(compare(&scores(&[1]), &scores(&[1])), Some(Drift { distance: 0.0, p_value: 1.0 }));
    }

    /// Counts, among all orders of `n` and `m` answers, the ones that reach a distance.
    fn orders(n: u32, m: u32, steps: i64) -> f64 {
        let mut reached = 0;
        let mut all = 0;
        for order in 0_u32..1 << (n + m) {
            if order.count_ones() != n {
                continue;
            }
            all += 1;
            let mut at = 0_i64;
            let mut largest = 0;
            for bit in 0..n + m {
                at += if order >> bit & 1 == 1 { i64::from(m) } else { -i64::from(n) };
                largest = largest.max(at.abs());
            }
            reached += i64::from(largest >= steps);
        }
        reached as f64 / f64::from(all)
    }

    #[test]
    fn large_samples_use_the_limit() {
        let one: Vec<_> = (0..100)
            .map(|score| ScoreCount { score: 1.0 - f64::from(score) / 100.0, cases: 400, right: 0 })
            .collect();
        let other: Vec<_> = one.iter().map(|count| ScoreCount { cases: 300, ..*count }).collect();
        assert_eq!(compare(&one, &other).unwrap().p_value, 1.0);
        let shifted: Vec<_> =
            one.iter().map(|count| ScoreCount { score: count.score - 0.02, ..*count }).collect();
        assert!(compare(&one, &shifted).unwrap().p_value < 1e-6);
    }

    proptest! {
        #[test]
        fn exact_p_value_counts_orders(
            one in proptest::collection::vec(0_u32..100, 1..6),
            other in proptest::collection::vec(0_u32..100, 1..6),
        ) {
            let drift = compare(&scores(&one), &scores(&other)).unwrap();
            let steps = (drift.distance * (one.len() * other.len()) as f64).round() as i64;
            let expected = orders(one.len() as u32, other.len() as u32, steps);
            prop_assert!((drift.p_value - expected).abs() < 1e-12, "{drift:?} {expected}");
        }
    }
}
