//! The map from a stated confidence to a probability.

use crate::Sample;

/// A stated confidence of 0 or 1 counts as one so far from it: nothing is certain, and its logit would be infinite.
const MARGIN: f64 = 0.005;

/// The precision of the prior of the intercept: N(0, 1).
const INTERCEPT: f64 = 1.0;

/// The precision of the prior of the slope: N(1, 1/2).
const SLOPE: f64 = 4.0;

/// A logistic map: the logit of the probability is `intercept + slope * logit(stated)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogisticMap {
    /// What is added: negative for a model that states too much.
    pub intercept: f64,
    /// By what the logit is multiplied: below 1 for a model whose confidence says little.
    pub slope: f64,
}

impl LogisticMap {
    /// The map that changes nothing, where the prior has its maximum.
    pub const AS_STATED: Self = Self { intercept: 0.0, slope: 1.0 };

    /// Fits the map to a sample. A prior at "as stated" keeps it from following chance: with few cases it stays close to
    /// [`Self::AS_STATED`], with many the prior has no weight.
    pub fn fit(sample: &Sample) -> Self {
        let mut map = Self::AS_STATED;
        let mut loss = map.loss(sample);
        // The loss is strictly convex, so Newton's method with halved steps ends at its only minimum, in fewer than 20 steps.
        for _ in 0..100 {
            let step = map.step(sample);
            let size = step.intercept.abs().max(step.slope.abs());
            let mut share = 1.0;
            let next = loop {
                let next = map.moved(step, share);
                let next_loss = next.loss(sample);
                if next_loss <= loss || share * size < 1e-14 {
                    loss = next_loss;
                    break next;
                }
                share /= 2.0;
            };
            map = next;
            if size < 1e-13 {
                break;
            }
        }
        map
    }

    /// Returns the probability that an answer with this confidence is right.
    pub fn probability(&self, stated: f64) -> f64 {
        1.0 / (1.0 + (-self.at(logit(stated))).exp())
    }

    fn at(&self, logit: f64) -> f64 {
        self.intercept + self.slope * logit
    }

    fn moved(&self, step: Self, share: f64) -> Self {
        Self { intercept: self.intercept - share * step.intercept, slope: self.slope - share * step.slope }
    }

    /// Returns the negative logarithm of the posterior density, up to a constant.
    fn loss(&self, sample: &Sample) -> f64 {
        let mut loss = INTERCEPT / 2.0 * self.intercept.powi(2) + SLOPE / 2.0 * (self.slope - 1.0).powi(2);
        for run in sample.weighted() {
            let z = self.at(logit(run.stated));
            loss += run.weight * (z.max(0.0) + (-z.abs()).exp().ln_1p() - run.truth() * z);
        }
        loss
    }

    /// Returns the step of Newton's method.
    fn step(&self, sample: &Sample) -> Self {
        let mut gradient = [INTERCEPT * self.intercept, SLOPE * (self.slope - 1.0)];
        let mut curvature = [INTERCEPT, 0.0, SLOPE];
        for run in sample.weighted() {
            let x = logit(run.stated);
            let probability = 1.0 / (1.0 + (-self.at(x)).exp());
            let error = run.weight * (probability - run.truth());
            let bend = run.weight * probability * (1.0 - probability);
            let [by_intercept, by_slope] = gradient;
            gradient = [by_intercept + error, by_slope + error * x];
            let [first, mixed, second] = curvature;
            curvature = [first + bend, mixed + bend * x, second + bend * x * x];
        }
        let [by_intercept, by_slope] = gradient;
        let [first, mixed, second] = curvature;
        // At least the product of the precisions of the prior, so never 0.
        let determinant = first * second - mixed * mixed;
        Self {
            intercept: (second * by_intercept - mixed * by_slope) / determinant,
            slope: (first * by_slope - mixed * by_intercept) / determinant,
        }
    }
}

fn logit(stated: f64) -> f64 {
    let stated = stated.clamp(MARGIN, 1.0 - MARGIN);
    (stated / (1.0 - stated)).ln()
}
