//! Answers whose truth is known, the material of every other measure.

use std::collections::HashMap;

use cog_spec::{Calibration, ScoreCount};

use crate::interval::{self, Interval};

/// One answer whose truth is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    case: usize,
    stated: f64,
    right: bool,
}

impl Run {
    /// Creates the run of a case. Returns `None` if the stated confidence is not from 0 to 1.
    ///
    /// `case` is any number that the runs of one case share.
    pub fn new(case: usize, stated: f64, right: bool) -> Option<Self> {
        (0.0..=1.0).contains(&stated).then_some(Self { case, stated, right })
    }

    /// Returns the number of its case.
    pub fn case(&self) -> usize {
        self.case
    }

    /// Returns the confidence that the answer states.
    pub fn stated(&self) -> f64 {
        self.stated
    }

    /// Returns whether the answer is right.
    pub fn is_right(&self) -> bool {
        self.right
    }
}

/// A number of runs, ordered by what they state.
///
/// Runs of the same case are not independent, so each case has the weight 1, which its runs share.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    runs: Vec<Weighted>,
    cases: usize,
}

/// A run with its part of the weight of its case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weighted {
    pub(crate) case: usize,
    pub(crate) stated: f64,
    pub(crate) right: bool,
    pub(crate) weight: f64,
    /// Whether it is the first run of its case. The first runs of all cases are independent draws.
    pub(crate) is_first: bool,
}

impl Weighted {
    /// Returns 1 for a right answer and 0 for a wrong one.
    pub(crate) fn truth(&self) -> f64 {
        f64::from(u8::from(self.right))
    }
}

impl Sample {
    /// Creates a sample of runs in the order in which they were made.
    pub fn new(runs: &[Run]) -> Self {
        let mut counts: HashMap<usize, u32> = HashMap::new();
        for run in runs {
            *counts.entry(run.case).or_default() += 1;
        }
        let cases = counts.len();
        let mut seen = std::collections::HashSet::with_capacity(cases);
        let mut runs: Vec<_> = runs
            .iter()
            .map(|run| Weighted {
                case: run.case,
                stated: run.stated,
                right: run.right,
                weight: 1.0 / f64::from(counts.get(&run.case).copied().unwrap_or(1)),
                is_first: seen.insert(run.case),
            })
            .collect();
        runs.sort_by(|one, other| one.stated.total_cmp(&other.stated));
        Self { runs, cases }
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Returns the share of right answers. Without a run there is none.
    pub fn accuracy(&self) -> Option<f64> {
        self.mean(Weighted::truth)
    }

    /// Returns the exact interval of the accuracy.
    pub fn accuracy_interval(&self, confidence: f64) -> Interval {
        if self.runs.is_empty() {
            return Interval::UNKNOWN;
        }
        let right: f64 = self.runs.iter().map(|run| run.weight * run.truth()).sum();
        interval::exact_of(right, self.cases as f64, confidence)
    }

    /// Returns the mean of the stated confidences.
    pub fn stated_mean(&self) -> Option<f64> {
        self.mean(|run| run.stated)
    }

    /// Returns the first run of each case, counted by what it states, from the highest confidence to the lowest.
    pub fn scores(&self) -> Vec<ScoreCount> {
        let mut scores: Vec<ScoreCount> = Vec::new();
        for run in self.runs.iter().rev().filter(|run| run.is_first) {
            let score = Calibration::rounded(run.stated);
            match scores.last_mut() {
                Some(last) if last.score == score => {
                    last.cases += 1;
                    last.right += u64::from(run.right);
                }
                _ => scores.push(ScoreCount { score, cases: 1, right: u64::from(run.right) }),
            }
        }
        scores
    }

    /// Returns the runs, in the order of what they state.
    pub(crate) fn weighted(&self) -> &[Weighted] {
        &self.runs
    }

    /// Returns the mean of a figure over all cases, where a case has the mean of its runs.
    pub(crate) fn mean(&self, figure: impl Fn(&Weighted) -> f64) -> Option<f64> {
        let sum: f64 = self.runs.iter().map(|run| run.weight * figure(run)).sum();
        (self.cases > 0).then(|| sum / self.cases as f64)
    }

    /// Returns the groups of runs that state the same, from the lowest to the highest.
    pub(crate) fn levels(&self) -> impl DoubleEndedIterator<Item = &[Weighted]> {
        self.runs.chunk_by(|one, other| one.stated == other.stated)
    }
}
