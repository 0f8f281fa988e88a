//! Intervals for the true rate behind a measured one.

use statrs::{
    distribution::{ContinuousCDF, Normal},
    function::beta::beta_reg,
};

use crate::Rate;

/// An interval of rates, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// What is known of a rate without any case.
    pub const UNKNOWN: Self = Self { low: 0.0, high: 1.0 };
}

/// Returns the exact interval of Clopper and Pearson for `confidence`, for example 0.95.
///
/// It holds the true rate in at least this share of repetitions, whatever the true rate is. Use it for promises.
pub fn exact(rate: Rate, confidence: f64) -> Interval {
    exact_of(rate.right() as f64, rate.cases() as f64, confidence)
}

/// Returns the exact interval of a number of right cases that may have a fraction: a case with several runs is right by the share
/// of its right runs. An average varies less than a single run, so the interval stays valid, and is wider than necessary.
pub(crate) fn exact_of(right: f64, cases: f64, confidence: f64) -> Interval {
    let tail = (1.0 - confidence) / 2.0;
    let wrong = cases - right;
    // What is left after summing fractions is not an answer.
    let low = if right < ROUNDING { 0.0 } else { quantile(right, wrong.max(0.0) + 1.0, tail) };
    let high = if wrong < ROUNDING { 1.0 } else { quantile(right.max(0.0) + 1.0, wrong, 1.0 - tail) };
    Interval { low, high }
}

/// The largest sum of rounding errors that a count may have.
const ROUNDING: f64 = 1e-6;

/// Returns the exact one-sided lower bound: the true rate is lower in at most `1 - confidence` of repetitions.
pub fn lower_bound(rate: Rate, confidence: f64) -> f64 {
    if rate.right() == 0 {
        return 0.0;
    }
    quantile(rate.right() as f64, (rate.cases() - rate.right()) as f64 + 1.0, 1.0 - confidence)
}

/// Returns the interval of Wilson for `confidence`, for example 0.95. It is narrower than the exact one: use it to show a rate.
pub fn wilson(rate: Rate, confidence: f64) -> Interval {
    wilson_of(rate.right() as f64, rate.cases() as f64, confidence)
}

/// Returns the interval of Wilson of a number of right cases that may have a fraction.
pub(crate) fn wilson_of(right: f64, cases: f64, confidence: f64) -> Interval {
    if cases <= 0.0 {
        return Interval::UNKNOWN;
    }
    let share = (right / cases).clamp(0.0, 1.0);
    let z = normal_quantile(confidence);
    let scale = 1.0 + z * z / cases;
    let middle = share + z * z / (2.0 * cases);
    let half = z * (share * (1.0 - share) / cases + z * z / (4.0 * cases * cases)).sqrt();
    Interval { low: ((middle - half) / scale).max(0.0), high: ((middle + half) / scale).min(1.0) }
}

/// Returns how many standard deviations hold this share of a normal distribution: 1.96 for 0.95.
pub(crate) fn normal_quantile(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(1.0 - (1.0 - confidence) / 2.0)
}

/// Returns the quantile of the beta distribution at the probability `p`.
///
/// The distribution function is exact to a few units in the last place, and bisection keeps that precision for every
/// shape; inverse functions of libraries lose digits in the tails.
fn quantile(a: f64, b: f64, p: f64) -> f64 {
    let mut low = 0.0_f64;
    let mut high = 1.0_f64;
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_reg(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(right: u64, cases: u64) -> Rate {
        Rate::new(right, cases).expect("not more right than cases")
    }

    fn assert_close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
    }

    /// Right, cases, confidence, and the bounds that `scipy.stats.binomtest(…).proportion_ci` gives: exact, then Wilson.
    const FROM_SCIPY: &[(u64, u64, f64, Interval, Interval)] = &[
        (20, 20, 0.95, bounds(0.8315665290169145, 1.0), bounds(0.8388748419471808, 1.0)),
        (0, 10, 0.95, bounds(0.0, 0.30849710781876294), bounds(0.0, 0.27753279986288926)),
        (
            7,
            10,
            0.95,
            bounds(0.3475471499399921, 0.9332604888222655),
            bounds(0.39677814746114526, 0.892208732593699),
        ),
        (
            50,
            100,
            0.95,
            bounds(0.39832112950330095, 0.6016788704966991),
            bounds(0.4038315303659956, 0.5961684696340044),
        ),
        (
            1,
            1000,
            0.99,
            bounds(5.0125292607668415e-6, 0.007406286938353162),
            bounds(0.00011741635361832165, 0.008460566219981695),
        ),
        (
            999,
            1000,
            0.9,
            bounds(0.9952650064245071, 0.9999487080210909),
            bounds(0.9955302770906311, 0.9997768761560879),
        ),
        (
            123_456,
            1_000_000,
            0.95,
            bounds(0.12281184162963026, 0.1241023402768027),
            bounds(0.12281269653142284, 0.12410219641400437),
        ),
        (1, 1, 0.95, bounds(0.025, 1.0), bounds(0.20654931437723745, 1.0)),
    ];

    const fn bounds(low: f64, high: f64) -> Interval {
        Interval { low, high }
    }

    #[test]
    fn intervals_equal_those_of_scipy() {
        for (right, cases, confidence, expected_exact, expected_wilson) in FROM_SCIPY {
            let exact = exact(rate(*right, *cases), *confidence);
            assert_close(exact.low, expected_exact.low);
            assert_close(exact.high, expected_exact.high);
            let wilson = wilson(rate(*right, *cases), *confidence);
            assert_close(wilson.low, expected_wilson.low);
            assert_close(wilson.high, expected_wilson.high);
        }
    }

    #[test]
    fn no_case_says_nothing() {
        assert_eq!(exact(rate(0, 0), 0.95), Interval::UNKNOWN);
        assert_eq!(wilson(rate(0, 0), 0.95), Interval::UNKNOWN);
    }

    /// With 22 right of 22, at least 90 % are right with 90 % confidence; with 21 of 21 that cannot be said.
    #[test]
    fn a_promise_needs_a_number_of_cases() {
        assert!(lower_bound(rate(22, 22), 0.9) >= 0.9);
        assert!(lower_bound(rate(21, 21), 0.9) < 0.9);
    }

    proptest::proptest! {
        #[test]
        fn an_interval_holds_its_rate(cases in 1_u64..5_000, share in 0.0..=1.0_f64, confidence in 0.5..0.999_f64) {
            let rate = rate((share * cases as f64) as u64, cases);
            for interval in [exact(rate, confidence), wilson(rate, confidence)] {
                let share = rate.share().expect("at least one case");
                proptest::prop_assert!(0.0 <= interval.low && interval.low <= share + 1e-12);
                proptest::prop_assert!(share <= interval.high + 1e-12 && interval.high <= 1.0);
            }
        }
    }
}
