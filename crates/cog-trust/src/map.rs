//! The map from a stated confidence to a probability.

use cog_spec::LogisticMap;

use crate::Sample;

/// The precision of the prior of the intercept: N(0, 1).
const INTERCEPT: f64 = 1.0;

/// The precision of the prior of the slope: N(1, 1/2).
const SLOPE: f64 = 4.0;

impl Sample {
    /// Fits the map from a stated confidence to a probability. A prior at "as stated" keeps it from following chance: with few cases
    /// it stays close to [`LogisticMap::AS_STATED`], with many the prior has no weight.
    pub fn map(&self) -> LogisticMap {
        let mut map = LogisticMap::AS_STATED;
        let mut loss = loss(map, self);
        // The loss is strictly convex, so Newton's method with halved steps ends at its only minimum, in fewer than 20 steps.
        for _ in 0..100 {
            let step = step(map, self);
            let size = step.intercept.abs().max(step.slope.abs());
            let mut share = 1.0;
            let next = loop {
                let next = moved(map, step, share);
                let next_loss = self::loss(next, self);
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
}

fn moved(map: LogisticMap, step: LogisticMap, share: f64) -> LogisticMap {
    LogisticMap { intercept: map.intercept - share * step.intercept, slope: map.slope - share * step.slope }
}

/// Returns the negative logarithm of the posterior density, up to a constant.
fn loss(map: LogisticMap, sample: &Sample) -> f64 {
    let mut loss = INTERCEPT / 2.0 * map.intercept.powi(2) + SLOPE / 2.0 * (map.slope - 1.0).powi(2);
    for run in sample.weighted() {
        let z = map.at(LogisticMap::logit(run.stated));
        loss += run.weight * (z.max(0.0) + (-z.abs()).exp().ln_1p() - run.truth() * z);
    }
    loss
}

/// Returns the step of Newton's method.
fn step(map: LogisticMap, sample: &Sample) -> LogisticMap {
    let mut gradient = [INTERCEPT * map.intercept, SLOPE * (map.slope - 1.0)];
    let mut curvature = [INTERCEPT, 0.0, SLOPE];
    for run in sample.weighted() {
        let x = LogisticMap::logit(run.stated);
        let probability = 1.0 / (1.0 + (-map.at(x)).exp());
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
    LogisticMap {
        intercept: (second * by_intercept - mixed * by_slope) / determinant,
        slope: (first * by_slope - mixed * by_intercept) / determinant,
    }
}
