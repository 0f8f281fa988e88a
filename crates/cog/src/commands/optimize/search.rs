//! The search: writes prompts from failures, keeps those that are right somewhere, and finds the best one.

use std::collections::{BTreeMap, BTreeSet};

use cog_contract::optimize::{Comparison, Front, Part, Split};
use cog_spec::ErrorBody;

/// What the search runs and asks.
pub(super) trait Trial {
    /// Runs cases with a prompt.
    async fn run(&self, prompt: &str, cases: &[usize]) -> Result<Vec<Scored>, Ended>;

    /// Writes another prompt.
    async fn write(&self, draft: Draft<'_>) -> Result<Written, Ended>;

    /// Returns why a prompt must not be tried.
    fn refuse(&self, prompt: &str) -> Option<String>;
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scored {
    pub(super) is_right: bool,
    /// What is wrong, for the model that writes the next prompt.
    pub(super) feedback: Vec<String>,
    /// The wrong answer as JSON.
    pub(super) answer: Option<String>,
}

/// Why the search ends before its steps are used up.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    /// The budget does not allow another call.
    Spent,
    /// A provider failed.
    Failed(Box<ErrorBody>),
}

/// What the next prompt is written from.
pub(super) struct Draft<'a> {
    /// The prompt that failed.
    pub(super) prompt: &'a str,
    /// The cases that it shows as examples.
    pub(super) shown: &'a BTreeSet<usize>,
    /// The cases in which it failed, at most three.
    pub(super) failures: Vec<(usize, &'a Scored)>,
    /// The cases that may be shown as examples.
    pub(super) free: Vec<usize>,
    /// A number that differs from step to step.
    pub(super) seed: u64,
    /// Why the last prompt was not kept.
    pub(super) last_reason: Option<&'a str>,
}

/// A prompt that was written, or why there is none.
pub(super) enum Written {
    Prompt(Proposal),
    Nothing(String),
}

/// A new prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) prompt: String,
    /// The cases that it shows as examples, which it is not tested on.
    pub(super) shown: BTreeSet<usize>,
}

/// The limits of a search.
pub(super) struct SearchLimits {
    /// The maximum number of steps.
    pub(super) steps: u32,
    /// Decides which cases and prompts are chosen.
    pub(super) seed: u64,
}

/// The steps in a row without a kept prompt after which a search ends.
const PATIENCE: u32 = 6;

/// The failing cases that a prompt is written from.
const BATCH: usize = 3;

/// A prompt that was kept, with its outcomes in training and validation.
pub(super) struct Candidate {
    pub(super) proposal: Proposal,
    outcomes: BTreeMap<usize, Scored>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The prompt that it started from: 0 is the one of the module.
    pub(super) parent: usize,
    /// The cases that it was written from.
    pub(super) cases: Vec<usize>,
    pub(super) outcome: Outcome,
}

/// What became of the prompt of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The model wrote none, or it was refused before it was tried.
    Refused(String),
    /// It has none of the cases right from which it was written.
    NotBetter,
    /// It was kept: how many of them it has right, and of the validation cases.
    Kept { small: usize, validation: usize },
}

/// The result of a search.
pub(super) struct Found {
    /// The prompts; the first is the one of the module.
    pub(super) candidates: Vec<Candidate>,
    pub(super) steps: Vec<Step>,
    /// The index of the prompt with most right answers in validation.
    pub(super) best: usize,
    /// Why the search ended.
    pub(super) end: End,
}

/// Why a search ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// Nothing is left to improve.
    NothingFails,
    /// The budget does not allow another step.
    Spent,
    /// All steps were used.
    Steps,
    /// The last steps in a row kept nothing.
    Stuck,
    /// A provider failed.
    Failed(Box<ErrorBody>),
}

impl From<Ended> for End {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Spent => End::Spent,
            Ended::Failed(error) => End::Failed(error),
        }
    }
}

impl Found {
    /// Returns how many cases of validation a prompt has right.
    pub(super) fn validation(&self, split: &Split, index: usize) -> usize {
        let cases = split.cases(Part::Validation);
        self.candidates
            .get(index)
            .map_or(0, |candidate| candidate.right(&cases).into_iter().filter(|it| *it).count())
    }
}

/// Searches for a better prompt.
///
/// # Errors
/// When the prompt of the module could not be measured.
pub(super) async fn search(
    trial: &impl Trial,
    split: &Split,
    prompt: &str,
    limits: &SearchLimits,
) -> Result<Found, Ended> {
    let mut search = Searching::start(trial, split, prompt).await?;
    let mut random = Random(limits.seed);
    let mut steps: Vec<Step> = Vec::new();
    let mut unlucky = 0;
    let end = loop {
        if steps.len() >= limits.steps as usize {
            break End::Steps;
        }
        if unlucky >= PATIENCE {
            break End::Stuck;
        }
        let Some((parent, cases)) = search.choose(&mut random) else { break End::NothingFails };
        let reason = steps.last().and_then(Step::reason);
        let outcome = match search.step(parent, &cases, random.draw(), reason.as_deref()).await {
            Ok(outcome) => outcome,
            Err(ended) => break ended.into(),
        };
        unlucky = if matches!(outcome, Outcome::Kept { .. }) { 0 } else { unlucky + 1 };
        steps.push(Step { parent, cases, outcome });
    };
    let best = search.front.best();
    Ok(Found { candidates: search.candidates, steps, best, end })
}

/// Runs two prompts on the held-out cases.
pub(super) async fn compare(
    trial: &impl Trial,
    split: &Split,
    old: &str,
    new: &str,
) -> Result<(Vec<bool>, Vec<bool>, Comparison), Ended> {
    let cases = split.cases(Part::HeldOut);
    let right = |scored: Vec<Scored>| scored.into_iter().map(|one| one.is_right).collect::<Vec<bool>>();
    let old = right(trial.run(old, &cases).await?);
    let new = right(trial.run(new, &cases).await?);
    let comparison = Comparison::new(&old, &new);
    Ok((old, new, comparison))
}

struct Searching<'a, T: Trial> {
    trial: &'a T,
    training: Vec<usize>,
    validation: Vec<usize>,
    candidates: Vec<Candidate>,
    front: Front,
    /// The prompts that were written so far, also those that were not kept.
    written: BTreeSet<String>,
}

impl<'a, T: Trial> Searching<'a, T> {
    async fn start(trial: &'a T, split: &Split, prompt: &str) -> Result<Self, Ended> {
        let mut search = Self {
            trial,
            training: split.cases(Part::Training),
            validation: split.cases(Part::Validation),
            candidates: Vec::new(),
            front: Front::default(),
            written: BTreeSet::from([prompt.trim().to_owned()]),
        };
        let proposal = Proposal { prompt: prompt.to_owned(), shown: BTreeSet::new() };
        search.keep(proposal, BTreeMap::new()).await?;
        Ok(search)
    }

    /// Chooses a prompt of the front, and three training cases in which it failed; none if no prompt of the front failed in any.
    fn choose(&self, random: &mut Random) -> Option<(usize, Vec<usize>)> {
        let mut parents: Vec<(usize, usize)> = self.front.parents();
        parents.retain(|(index, _)| {
            self.candidates.get(*index).is_some_and(|it| it.has_failures(&self.training))
        });
        let parent = random.weighted(&parents)?;
        let mut failing = self.candidates.get(parent)?.failures(&self.training);
        random.shuffle(&mut failing);
        failing.truncate(BATCH);
        failing.sort_unstable();
        Some((parent, failing))
    }

    async fn step(
        &mut self,
        parent: usize,
        cases: &[usize],
        seed: u64,
        last_reason: Option<&str>,
    ) -> Result<Outcome, Ended> {
        let Some(from) = self.candidates.get(parent) else { return Ok(Outcome::NotBetter) };
        let failures = cases.iter().filter_map(|case| Some((*case, from.outcomes.get(case)?))).collect();
        let free = self.training.iter().copied().filter(|case| !cases.contains(case)).collect();
        let Proposal { prompt, shown } = &from.proposal;
        let proposal =
            match self.trial.write(Draft { prompt, shown, failures, free, seed, last_reason }).await? {
                Written::Prompt(proposal) => proposal,
                Written::Nothing(why) => return Ok(Outcome::Refused(why)),
            };
        if let Some(why) = self.trial.refuse(&proposal.prompt) {
            return Ok(Outcome::Refused(why));
        }
        if !self.written.insert(proposal.prompt.trim().to_owned()) {
            return Ok(Outcome::Refused("it was proposed before".to_owned()));
        }
        let scored = self.trial.run(&proposal.prompt, cases).await?;
        let small = scored.iter().filter(|one| one.is_right).count();
        // The prompt that it was written from has none of them right.
        if small == 0 {
            return Ok(Outcome::NotBetter);
        }
        self.keep(proposal, cases.iter().copied().zip(scored).collect()).await?;
        let validation = self.front.right(self.candidates.len() - 1);
        Ok(Outcome::Kept { small, validation })
    }

    /// Runs the cases that a prompt was not run on, and keeps it.
    async fn keep(&mut self, proposal: Proposal, mut outcomes: BTreeMap<usize, Scored>) -> Result<(), Ended> {
        let all = self.training.iter().chain(&self.validation).copied();
        let missing: Vec<usize> =
            all.filter(|case| !outcomes.contains_key(case) && !proposal.shown.contains(case)).collect();
        let scored = self.trial.run(&proposal.prompt, &missing).await?;
        outcomes.extend(missing.into_iter().zip(scored));
        let candidate = Candidate { proposal, outcomes };
        self.front.add(candidate.right(&self.validation));
        self.candidates.push(candidate);
        Ok(())
    }
}

impl Candidate {
    fn failures(&self, cases: &[usize]) -> Vec<usize> {
        let failed = |case: &&usize| self.outcomes.get(case).is_some_and(|scored| !scored.is_right);
        cases.iter().filter(failed).copied().collect()
    }

    fn has_failures(&self, cases: &[usize]) -> bool {
        !self.failures(cases).is_empty()
    }

    fn right(&self, cases: &[usize]) -> Vec<bool> {
        let is_right = |case: &usize| self.outcomes.get(case).is_some_and(|scored| scored.is_right);
        cases.iter().map(is_right).collect()
    }
}

impl Step {
    /// Returns what the next writer should know of this step.
    fn reason(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Refused(why) => Some(format!("Your last prompt was refused: {why}.")),
            Outcome::NotBetter => Some("Your last prompt had none of its cases right.".to_owned()),
            Outcome::Kept { .. } => None,
        }
    }
}

/// Random numbers that depend on the seed alone (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below the limit; 0 if that is 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.draw() % limit).unwrap_or_default()
    }

    /// Chooses one of several values by their weights.
    fn weighted(&mut self, values: &[(usize, usize)]) -> Option<usize> {
        let mut at = self.below(values.iter().map(|(_, weight)| weight).sum());
        for (value, weight) in values {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return Some(*value),
            }
        }
        None
    }

    pub(super) fn shuffle<V>(&mut self, values: &mut [V]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests;
