//! How good stated confidences are, in one number.

use crate::{
    Sample,
    interval::{self, Interval},
};

/// The Brier score: the mean squared distance of the stated confidence from the truth. 0 is best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brier {
    /// The score.
    pub score: f64,
    /// The part of the error that is removed, compared with always stating the accuracy: 1 is perfect, 0 is no better, and less
    /// than 0 is worse. There is none if all answers are right, or all are wrong.
    pub skill: Option<f64>,
}

/// The area under the ROC curve: how often a right answer states more than a wrong one. 0.5 is chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auroc {
    /// The area.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

impl Sample {
    /// Returns the Brier score. Without a run there is none.
    pub fn brier(&self) -> Option<Brier> {
        let score = self.mean(|run| (run.stated - run.truth()).powi(2))?;
        let accuracy = self.accuracy()?;
        // The smallest accuracy of all cases that is not 0 is far above a rounding error.
        let base = accuracy * (1.0 - accuracy);
        Some(Brier { score, skill: (base > 1e-12).then(|| 1.0 - score / base) })
    }

    /// Returns the mean of the negative logarithm of the probability that was given to the truth. A confidence of 0 or 1 that is
    /// wrong counts as one that is wrong by the smallest step of a floating-point number, as in scikit-learn.
    pub fn log_loss(&self) -> Option<f64> {
        self.mean(|run| {
            let stated = run.stated.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
            if run.right { -stated.ln() } else { -(1.0 - stated).ln() }
        })
    }

    /// Returns the area under the ROC curve. There is none if all answers are right, or all are wrong.
    pub fn auroc(&self) -> Option<Auroc> {
        let mut right = 0.0;
        let mut wrong = 0.0;
        let mut above = 0.0;
        for level in self.levels() {
            let here = |is_right: bool| -> f64 {
                level.iter().filter(|run| run.right == is_right).map(|run| run.weight).sum()
            };
            above += here(true) * (wrong + here(false) / 2.0);
            right += here(true);
            wrong += here(false);
        }
        let is_mixed = self.runs() > 0 && right > 0.0 && wrong > 0.0;
        is_mixed.then(|| {
            let value = (above / (right * wrong)).clamp(0.0, 1.0);
            Auroc { value, interval: auroc_interval(value, right, wrong, 0.95) }
        })
    }
}

/// Returns the interval of Newcombe (2006, method 5): the areas from which the measured one is at most so many standard errors
/// away, with the variance of Hanley and McNeil at the supposed area.
///
/// On the scores of `cargo xtask bench trust` with 20 cases it held the area in 96 % of draws; the interval of DeLong in 81 to 87 %,
/// and it has no width if right and wrong answers are separated.
fn auroc_interval(value: f64, right: f64, wrong: f64, confidence: f64) -> Interval {
    let z = interval::normal_quantile(confidence);
    let is_inside = |area: f64| (area - value).abs() <= z * variance(area, right, wrong).sqrt();
    Interval { low: edge(value, 0.0, is_inside), high: edge(value, 1.0, is_inside) }
}

fn variance(area: f64, right: f64, wrong: f64) -> f64 {
    let pairs = f64::midpoint(right, wrong) - 1.0;
    let spread = 1.0 + pairs * ((1.0 - area) / (2.0 - area) + area / (1.0 + area));
    area * (1.0 - area) / (right * wrong) * spread
}

/// Returns the value between `inside` and `outside` at which the condition ends.
fn edge(mut inside: f64, mut outside: f64, is_inside: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = f64::midpoint(inside, outside);
        if middle == inside || middle == outside {
            return inside;
        }
        if is_inside(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
}
