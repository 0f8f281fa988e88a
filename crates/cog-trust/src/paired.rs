//! Comparisons of two ways to answer the same cases.

use statrs::distribution::{Binomial, DiscreteCDF};

/// Returns the two-sided p-value of the exact test of McNemar: how likely so uneven a split is if both ways are equally good.
///
/// The arguments count the cases that only one of the two ways got right. Cases on which both agree say nothing.
///
/// ```
/// assert_eq!(cog_trust::paired::mcnemar(0, 0), 1.0);
/// assert_eq!(cog_trust::paired::mcnemar(5, 5), 1.0);
/// assert_eq!(format!("{:.4}", cog_trust::paired::mcnemar(0, 6)), "0.0313");
/// ```
pub fn mcnemar(only_first: u64, only_second: u64) -> f64 {
    let differing = only_first + only_second;
    // A half is a probability, so the distribution exists for every count.
    let Ok(distribution) = Binomial::new(0.5, differing) else { return 1.0 };
    (2.0 * distribution.cdf(only_first.min(only_second))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::mcnemar;

    /// The values are those of `scipy.stats.binomtest(smaller, sum, 0.5).pvalue`.
    #[test]
    fn p_values_equal_those_of_scipy() {
        for (first, second, expected) in [
            (9, 1, 0.021484375),
            (1, 9, 0.021484375),
            (3, 4, 1.0),
            (120, 90, 0.045114087864840696),
            (1000, 1100, 0.03072070786424249),
        ] {
            let got = mcnemar(first, second);
            assert!((got - expected).abs() < 1e-9, "{first}, {second}: {got} is not {expected}");
        }
    }
}
