//! Whether answers that state 0.8 are right in 8 of 10 cases.

use std::collections::HashMap;

use crate::{
    Sample,
    interval::{self, Interval},
    sample::Weighted,
};

/// The number of bins of a reliability diagram.
const BINS: usize = 5;

/// Above this number of cases in a bin, the sum of their truths is taken as normal. The error is then below a thousandth.
const MAX_EXACT: usize = 2_000;

/// The answers that state about the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The lowest stated confidence.
    pub low: f64,
    /// The highest stated confidence.
    pub high: f64,
    /// The number of cases. The runs of one case may be in several bins, so it can have a fraction.
    pub cases: f64,
    /// The mean of the stated confidences.
    pub stated: f64,
    /// The share of right answers.
    pub accuracy: f64,
    /// The 95 % interval of the accuracy (Wilson).
    pub interval: Interval,
}

/// The expected calibration error: the mean distance between stated confidence and accuracy, over the bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationError {
    /// What was measured.
    pub value: f64,
    /// What a perfectly calibrated source would read on average with these confidences and this number of cases. It is not 0:
    /// chance alone moves the accuracy of a bin.
    pub null: f64,
}

impl Sample {
    /// Returns the reliability in five bins with the same number of cases. Equal confidences are in the same bin, so there can be
    /// fewer bins.
    pub fn reliability(&self) -> Vec<Bin> {
        self.bins().into_iter().filter_map(Bin::of).collect()
    }

    /// Returns the calibration error over the bins of [`Self::reliability`]. Without a run there is none.
    pub fn calibration_error(&self) -> Option<CalibrationError> {
        let cases = self.cases() as f64;
        let mut value = 0.0;
        let mut null = 0.0;
        for bin in self.bins() {
            value += bin.iter().map(|run| run.weight * (run.stated - run.truth())).sum::<f64>().abs();
            null += expected_distance(bin);
        }
        (cases > 0.0).then(|| CalibrationError { value: value / cases, null: null / cases })
    }

    /// Returns the runs between the quintiles of the stated confidences, in order. A run whose confidence equals a quintile is
    /// below it, as in scikit-learn.
    fn bins(&self) -> Vec<&[Weighted]> {
        let edges = self.quintiles();
        let index = |run: &Weighted| edges.iter().filter(|edge| run.stated > **edge).count();
        self.weighted().chunk_by(|one, other| index(one) == index(other)).collect()
    }

    /// Returns the four values that separate five equal parts, with linear interpolation between two runs.
    fn quintiles(&self) -> Vec<f64> {
        let runs = self.weighted();
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Vec::new() };
        let length = self.cases() as f64 - f64::midpoint(first.weight, last.weight);
        (1..BINS).map(|part| at(runs, part as f64 * length / BINS as f64)).collect()
    }
}

/// Returns the stated confidence at a position: the middle of the first run is at 0, and each run is as wide as its weight.
fn at(runs: &[Weighted], position: f64) -> f64 {
    let mut before = 0.0;
    for pair in runs.windows(2) {
        let [one, other] = pair else { break };
        let width = f64::midpoint(one.weight, other.weight);
        if position < before + width {
            let share = (position - before) / width;
            return one.stated + share * (other.stated - one.stated);
        }
        before += width;
    }
    runs.last().map_or(0.0, |run| run.stated)
}

impl Bin {
    fn of(runs: &[Weighted]) -> Option<Self> {
        let first = runs.first()?;
        let last = runs.last()?;
        let cases: f64 = runs.iter().map(|run| run.weight).sum();
        let right: f64 = runs.iter().map(|run| run.weight * run.truth()).sum();
        let stated: f64 = runs.iter().map(|run| run.weight * run.stated).sum();
        Some(Self {
            low: first.stated,
            high: last.stated,
            cases,
            stated: stated / cases,
            accuracy: right / cases,
            interval: interval::wilson_of(right, cases, 0.95),
        })
    }
}

/// Returns the expected distance between the sum of the stated confidences and the number of right answers, if each case is right
/// with the probability that it states. Runs of one case are right or wrong together.
fn expected_distance(runs: &[Weighted]) -> f64 {
    let mut cases: HashMap<usize, (f64, f64)> = HashMap::new();
    for run in runs {
        let (weight, stated) = cases.entry(run.case).or_default();
        *weight += run.weight;
        *stated += run.weight * run.stated;
    }
    let is_simple = cases.len() <= MAX_EXACT && runs.iter().all(|run| run.weight == 1.0);
    if is_simple {
        return expected_distance_of(runs);
    }
    let variance: f64 = cases
        .values()
        .map(|(weight, stated)| {
            let probability = (stated / weight).clamp(0.0, 1.0);
            weight * weight * probability * (1.0 - probability)
        })
        .sum();
    (variance * std::f64::consts::FRAC_2_PI).sqrt()
}

/// The same, exact, for runs of different cases: with the distribution of the number of right answers.
fn expected_distance_of(runs: &[Weighted]) -> f64 {
    let mut distribution = vec![1.0];
    for run in runs {
        distribution.push(0.0);
        let mut below = 0.0;
        for probability in &mut distribution {
            let here = *probability;
            *probability = here * (1.0 - run.stated) + below * run.stated;
            below = here;
        }
    }
    let stated: f64 = runs.iter().map(|run| run.stated).sum();
    distribution
        .iter()
        .enumerate()
        .map(|(right, probability)| probability * (stated - right as f64).abs())
        .sum()
}
