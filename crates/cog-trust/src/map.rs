//! The map from evidence to a probability.

use std::iter::once;

use cog_spec::LogisticMap;

use crate::Sample;

/// The precision of the prior of the intercept: N(0, 1).
const INTERCEPT: f64 = 1.0;

/// The precision of the prior of a slope: the standard deviation is 1/2.
const SLOPE: f64 = 4.0;

impl Sample {
    /// Fits the map from a stated confidence to a probability. A prior at "as stated" keeps it from following chance: with few cases
    /// it stays close to [`LogisticMap::AS_STATED`], with many the prior has no weight.
    pub fn map(&self) -> LogisticMap {
        let mut cases = Cases::new(1);
        for run in self.weighted() {
            cases.add(once(run.stated), run.weight, run.right);
        }
        let fitted = cases.fit();
        let (intercept, slope) = (fitted.first(), fitted.last());
        LogisticMap { intercept: intercept.copied().unwrap_or(0.0), slope: slope.copied().unwrap_or(1.0) }
    }
}

/// The cases that a map is fitted to, with the logits of their evidence.
#[derive(Debug)]
pub(crate) struct Cases {
    kinds: usize,
    /// For each run, 1 for the intercept and the logit of each kind.
    terms: Vec<f64>,
    outcomes: Vec<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    weight: f64,
    truth: f64,
}

impl Cases {
    /// Creates a set of cases with this number of kinds of evidence.
    pub(crate) fn new(kinds: usize) -> Self {
        Self { kinds, terms: Vec::new(), outcomes: Vec::new() }
    }

    /// Adds a run with the number of each kind.
    pub(crate) fn add(&mut self, evidence: impl Iterator<Item = f64>, weight: f64, right: bool) {
        self.terms.extend(once(1.0).chain(evidence.map(LogisticMap::logit)));
        self.outcomes.push(Outcome { weight, truth: f64::from(u8::from(right)) });
    }

    /// Returns the intercept and the slopes with the greatest posterior density.
    ///
    /// The prior is "as stated": the intercept is 0, and the slopes are equal with the sum 1, so that the logit of the probability
    /// is the mean of the logits of the evidence.
    pub(crate) fn fit(&self) -> Vec<f64> {
        let mut map: Vec<f64> = self.prior().map(|(mean, _)| mean).collect();
        let mut loss = self.loss(&map);
        // The loss is strictly convex, so Newton's method with halved steps ends at its only minimum, in fewer than 20 steps.
        for _ in 0..100 {
            let step = self.step(&map);
            let size = step.iter().fold(0.0_f64, |size, part| size.max(part.abs()));
            let mut share = 1.0;
            map = loop {
                let next: Vec<f64> =
                    map.iter().zip(&step).map(|(value, step)| value - share * step).collect();
                let next_loss = self.loss(&next);
                if next_loss <= loss || share * size < 1e-14 {
                    loss = next_loss;
                    break next;
                }
                share /= 2.0;
            };
            if size < 1e-13 {
                break;
            }
        }
        map
    }

    /// Returns the mean and the precision of the prior of each coefficient.
    fn prior(&self) -> impl Iterator<Item = (f64, f64)> {
        let slope = (1.0 / self.kinds.max(1) as f64, SLOPE);
        once((0.0, INTERCEPT)).chain(std::iter::repeat_n(slope, self.kinds))
    }

    /// Returns the terms and the outcome of each run.
    fn runs(&self) -> impl Iterator<Item = (&[f64], &Outcome)> {
        self.terms.chunks_exact(self.kinds + 1).zip(&self.outcomes)
    }

    /// Returns the negative logarithm of the posterior density, up to a constant.
    fn loss(&self, map: &[f64]) -> f64 {
        let prior = self.prior().zip(map);
        let mut loss: f64 =
            prior.map(|((mean, precision), value)| precision / 2.0 * (value - mean).powi(2)).sum();
        for (terms, outcome) in self.runs() {
            let z = logit(map, terms);
            loss += outcome.weight * (z.max(0.0) + (-z.abs()).exp().ln_1p() - outcome.truth * z);
        }
        loss
    }

    /// Returns the step of Newton's method.
    fn step(&self, map: &[f64]) -> Vec<f64> {
        let mut gradient: Vec<f64> =
            self.prior().zip(map).map(|((mean, precision), value)| precision * (value - mean)).collect();
        let mut curvature: Vec<Vec<f64>> = vec![vec![0.0; self.kinds + 1]; self.kinds + 1];
        for (terms, outcome) in self.runs() {
            let probability = LogisticMap::probability_at(logit(map, terms));
            let error = outcome.weight * (probability - outcome.truth);
            let bend = outcome.weight * probability * (1.0 - probability);
            for ((by_term, row), term) in gradient.iter_mut().zip(&mut curvature).zip(terms) {
                *by_term += error * term;
                row.iter_mut().zip(terms).for_each(|(cell, other)| *cell += bend * term * other);
            }
        }
        for (index, (row, (_, precision))) in curvature.iter_mut().zip(self.prior()).enumerate() {
            row.iter_mut().skip(index).take(1).for_each(|cell| *cell += precision);
        }
        let rows = curvature.into_iter().zip(gradient);
        let rows: Vec<Vec<f64>> = rows.map(|(row, right)| row.into_iter().chain([right]).collect()).collect();
        solve(&rows)
    }
}

fn logit(map: &[f64], terms: &[f64]) -> f64 {
    map.iter().zip(terms).map(|(value, term)| value * term).sum()
}

/// Solves equations by elimination. A row holds the coefficients and then the right side. The coefficients are a positive definite
/// matrix, so no pivot is 0.
fn solve(rows: &[Vec<f64>]) -> Vec<f64> {
    let Some(([first, rest @ ..], others)) = rows.split_first().map(|(row, others)| (row.as_slice(), others))
    else {
        return Vec::new();
    };
    let eliminated: Vec<Vec<f64>> = others
        .iter()
        .filter_map(|row| row.split_first())
        .map(|(head, tail)| tail.iter().zip(rest).map(|(cell, other)| cell - head / first * other).collect())
        .collect();
    let mut solution = solve(&eliminated);
    let Some((right, coefficients)) = rest.split_last() else { return Vec::new() };
    let known: f64 = coefficients.iter().zip(&solution).map(|(cell, value)| cell * value).sum();
    solution.insert(0, (right - known) / first);
    solution
}
