//! Which prompts are kept, by case.

use cog_trust::paired;

/// The prompts that are kept: for each, which validation cases it has right. The first one is the prompt of the module.
#[derive(Debug, Clone, Default)]
pub struct Front(Vec<Vec<bool>>);

impl Front {
    /// Adds a prompt. All prompts have the same cases.
    pub fn add(&mut self, right: Vec<bool>) {
        self.0.push(right);
    }

    /// Returns the index of the prompt that is right most often; of several, the oldest.
    pub fn best(&self) -> usize {
        let mut best = (0, 0);
        for (index, right) in self.0.iter().enumerate() {
            let count = count(right);
            if count > best.1 {
                best = (index, count);
            }
        }
        best.0
    }

    /// Returns how many cases a prompt has right.
    pub fn right(&self, index: usize) -> usize {
        self.0.get(index).map_or(0, |right| count(right))
    }

    /// Returns the prompts from which another one may be written, each with its weight: the number of cases that it has right and for
    /// which it is not dominated. A prompt is dominated if another one is right wherever it is, and once more. So a prompt survives that
    /// is the only one with a right answer to some case, although others are better on average.
    pub fn parents(&self) -> Vec<(usize, usize)> {
        let kept = self.0.iter().enumerate().filter(|(index, right)| !self.is_dominated(*index, right));
        // A prompt that has nothing right may still be the only one.
        kept.map(|(index, right)| (index, count(right).max(1))).collect()
    }

    fn is_dominated(&self, index: usize, right: &[bool]) -> bool {
        self.0.iter().enumerate().any(|(other_index, other)| {
            let is_never_worse = right.iter().zip(other).all(|(mine, theirs)| *theirs || !mine);
            let is_equal = right == other.as_slice();
            is_never_worse && (!is_equal || other_index < index)
        })
    }
}

fn count(right: &[bool]) -> usize {
    right.iter().filter(|right| **right).count()
}

/// Two prompts on the same held-out cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The cases.
    pub cases: u64,
    /// The cases that only the old prompt has right.
    pub only_old: u64,
    /// The cases that only the new prompt has right.
    pub only_new: u64,
}

impl Comparison {
    /// Compares the outcomes of two prompts, case by case.
    pub fn new(old: &[bool], new: &[bool]) -> Self {
        let mut found = Self::default();
        for (old, new) in old.iter().zip(new) {
            found.cases += 1;
            found.only_old += u64::from(*old && !new);
            found.only_new += u64::from(*new && !old);
        }
        found
    }

    /// Returns the p-value of the exact test of McNemar.
    pub fn p_value(self) -> f64 {
        paired::mcnemar(self.only_old, self.only_new)
    }

    /// Returns whether the comparison is against the new prompt: more cases newly fail than newly pass. Held-out cases are few, so
    /// that waiting for a significant difference would let most bad prompts pass.
    pub fn is_against(self) -> bool {
        self.only_old > self.only_new
    }
}
