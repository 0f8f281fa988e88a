//! The threshold above which answers can be accepted, with a promise.

use cog_spec::ScoreCount;
use statrs::function::beta::beta_reg;

use crate::{Sample, sample::Weighted};

/// What a gate promises: at least `target` of the accepted answers are right, and the promise is broken in at most `risk` of
/// calibrations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    target: f64,
    risk: f64,
}

/// The result of a calibration for a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gate {
    /// Answers that state at least this can be accepted.
    Threshold {
        /// The lowest confidence that is accepted.
        threshold: f64,
        /// The number of calibration cases that it accepts.
        accepted: u64,
        /// How many of them are right.
        right: u64,
    },
    /// The cases do not suffice for the promise.
    Needed {
        /// The number of right answers, and no wrong one, that would suffice.
        answers: u64,
        /// The confidence that these answers must state at least; none if there is no case at all.
        at_least: Option<f64>,
    },
}

/// The cases with at least a stated confidence.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    threshold: f64,
    right: u64,
    wrong: u64,
}

impl Goal {
    /// Creates a goal. Returns `None` unless both are between 0 and 1, without the bounds.
    pub fn new(target: f64, risk: f64) -> Option<Self> {
        let is_open = |value: f64| 0.0 < value && value < 1.0;
        (is_open(target) && is_open(risk)).then_some(Self { target, risk })
    }

    /// Returns the wanted share of right answers among the accepted ones.
    pub fn target(self) -> f64 {
        self.target
    }

    /// Returns the probability that the promise is broken.
    pub fn risk(self) -> f64 {
        self.risk
    }

    /// Returns the smallest number of cases that can be enough: all of them right.
    ///
    /// ```
    /// let goal = cog_trust::Goal::new(0.95, 0.1).expect("between 0 and 1");
    /// assert_eq!(goal.fewest_cases(), 45);
    /// ```
    pub fn fewest_cases(self) -> u64 {
        let estimate = (self.risk.ln() / self.target.ln()).ceil().max(1.0) as u64;
        // The quotient of the logarithms can be rounded to either side of a whole number.
        let near = estimate.saturating_sub(1).max(1)..=estimate;
        near.into_iter().find(|cases| self.holds(*cases, 0)).unwrap_or(estimate + 1)
    }

    /// Whether the exact lower bound of the rate is at least the target: as many right answers would be seen in at most `risk` of
    /// draws if the true rate were below the target.
    fn holds(self, right: u64, wrong: u64) -> bool {
        right > 0 && beta_reg(right as f64, wrong as f64 + 1.0, self.target) <= self.risk
    }

    /// Chooses the threshold.
    ///
    /// Candidates are the stated confidences, from the highest to the lowest. The first one with enough cases is tested, then the
    /// next, until a test fails: since the order is fixed, the risk of a wrong promise is the risk of one test, however many are
    /// made. The lowest threshold that reached the target on the same cases would promise too much.
    ///
    /// The first run of each case counts, because a test needs independent answers.
    pub fn gate(self, sample: &Sample) -> Gate {
        self.choose(&candidates(sample))
    }

    /// Chooses the threshold as [`Goal::gate`] does, from counts of cases. `scores` go from the highest score to the lowest.
    pub fn gate_of_scores(self, scores: &[ScoreCount]) -> Gate {
        let mut before = Candidate { threshold: 1.0, right: 0, wrong: 0 };
        let candidates = scores.iter().map(|count| {
            before = Candidate {
                threshold: count.score,
                right: before.right + count.right,
                wrong: before.wrong + count.cases.saturating_sub(count.right),
            };
            before
        });
        self.choose(&candidates.collect::<Vec<_>>())
    }

    fn choose(self, candidates: &[Candidate]) -> Gate {
        let fewest = self.fewest_cases();
        let tested = candidates.iter().filter(|candidate| candidate.cases() >= fewest);
        match tested.take_while(|candidate| self.holds(candidate.right, candidate.wrong)).last() {
            Some(found) => {
                Gate::Threshold { threshold: found.threshold, accepted: found.cases(), right: found.right }
            }
            None => self.needed(candidates, fewest),
        }
    }

    /// Returns the fewest right answers that would change the result. They are added at or above the candidate that is then the
    /// first one with enough cases, so it is the one to be tested.
    fn needed(self, candidates: &[Candidate], fewest: u64) -> Gate {
        let mut best = Gate::Needed { answers: fewest, at_least: None };
        let mut least = u64::MAX;
        let mut before = 0;
        for candidate in candidates {
            // With fewer answers it is not tested, with more the candidate above it is.
            let from = fewest.saturating_sub(candidate.cases()).max(1);
            let to = fewest.saturating_sub(before);
            let is_first = before == 0;
            before = candidate.cases();
            let answers = self.missing(candidate, from);
            if (is_first || answers < to) && answers < least {
                least = answers;
                best = Gate::Needed { answers, at_least: Some(candidate.threshold) };
            }
            if before >= fewest {
                break;
            }
        }
        best
    }

    /// Returns the smallest number of right answers, `from` at least, with which the test of a candidate succeeds.
    fn missing(self, candidate: &Candidate, from: u64) -> u64 {
        let holds = |answers: u64| self.holds(candidate.right + answers, candidate.wrong);
        if holds(from) {
            return from;
        }
        let mut fails = from;
        let mut enough = from.saturating_mul(2);
        while !holds(enough) && enough < MAX_NEEDED {
            fails = enough;
            enough = enough.saturating_mul(2);
        }
        while enough - fails > 1 {
            let middle = u64::midpoint(fails, enough);
            if holds(middle) {
                enough = middle;
            } else {
                fails = middle;
            }
        }
        enough
    }
}

/// More answers than this are never looked for.
const MAX_NEEDED: u64 = 1 << 50;

impl Candidate {
    fn cases(&self) -> u64 {
        self.right + self.wrong
    }
}

/// Returns the stated confidences of the first runs, from the highest to the lowest, with what they accept.
fn candidates(sample: &Sample) -> Vec<Candidate> {
    let mut right = 0;
    let mut wrong = 0;
    let levels = sample.levels().rev().filter_map(|level| {
        let threshold = level.first()?.stated;
        let first = |is_right: bool| -> u64 {
            level.iter().filter(|run: &&Weighted| run.is_first && run.right == is_right).count() as u64
        };
        let here = first(true) + first(false);
        right += first(true);
        wrong += first(false);
        (here > 0).then_some(Candidate { threshold, right, wrong })
    });
    levels.collect()
}
