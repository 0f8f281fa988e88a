//! What is gained by accepting only confident answers.

use crate::Sample;

/// What a threshold accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// The lowest confidence that is accepted.
    pub threshold: f64,
    /// The share of answers that are accepted.
    pub accepted: f64,
    /// The share of right answers among them.
    pub accuracy: f64,
}

impl Sample {
    /// Returns the risk-coverage curve: a point for each stated confidence as the threshold, from the highest to the lowest.
    pub fn coverage(&self) -> Vec<Coverage> {
        let mut accepted = 0.0;
        let mut right = 0.0;
        let levels = self.levels().rev().filter_map(|level| {
            let threshold = level.first()?.stated;
            accepted += level.iter().map(|run| run.weight).sum::<f64>();
            right += level.iter().map(|run| run.weight * run.truth()).sum::<f64>();
            Some(Coverage { threshold, accepted: accepted / self.cases() as f64, accuracy: right / accepted })
        });
        levels.collect()
    }
}
