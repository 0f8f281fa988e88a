//! Several kinds of evidence in one map, as far as cross-validation says that they help.

use std::collections::{BTreeMap, HashMap};

use cog_spec::{EvidenceMap, LogisticMap};

use crate::{Run, Sample, map::Cases};

/// The parts of a cross-validation.
const FOLDS: usize = 10;

/// An answer whose truth is known, with the numbers of several kinds of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    case: usize,
    evidence: Vec<f64>,
    right: bool,
}

impl Observation {
    /// Creates the observation of a case. Returns `None` unless there is evidence, with all numbers from 0 to 1.
    pub fn new(case: usize, evidence: Vec<f64>, right: bool) -> Option<Self> {
        let is_valid = !evidence.is_empty() && evidence.iter().all(|value| (0.0..=1.0).contains(value));
        is_valid.then_some(Self { case, evidence, right })
    }

    /// Returns the numbers, in the order of the kinds.
    pub fn evidence(&self) -> &[f64] {
        &self.evidence
    }

    /// Returns whether the answer is right.
    pub fn is_right(&self) -> bool {
        self.right
    }

    fn run(&self, stated: f64) -> Option<Run> {
        Run::new(self.case, stated, self.right)
    }
}

/// The map of the evidence that tells most about answers.
#[derive(Debug, Clone)]
pub struct Combination {
    /// The map.
    pub map: EvidenceMap,
    /// What the map says about the observations. With one kind of evidence, a run states its number. With several, it states the
    /// probability by a map that was fitted without its case, so that the figures of a sample do not flatter the map.
    pub runs: Vec<Run>,
    /// The same observations, each with the probability by [`Combination::map`]; none if the map reads one kind of evidence.
    pub by_map: Vec<Run>,
    /// The kinds that were compared, in the order of the comparisons; none if there is only one kind.
    pub trials: Vec<Trial>,
}

/// What cross-validation says about kinds of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The kinds.
    pub kinds: Vec<String>,
    /// The mean log loss of cases by a map that was fitted without them.
    pub log_loss: f64,
    /// Whether the map reads these kinds.
    pub is_chosen: bool,
}

/// Fits a map of the kinds of evidence that help.
///
/// It starts with the kind that has the lowest log loss in a cross-validation by case. Another kind is added if it lowers the log loss
/// by more than the standard error of the difference, which chance alone rarely does. `kinds` names the numbers of each observation.
pub fn combine(kinds: &[&str], observations: &[Observation]) -> Combination {
    let cross = CrossValidation::new(observations);
    let mut chosen: Vec<usize> = Vec::new();
    let mut trials = Vec::new();
    if kinds.len() > 1 {
        let mut best: Option<Validated> = None;
        loop {
            let left = (0..kinds.len()).filter(|kind| !chosen.contains(kind));
            let mut found: Option<(usize, Validated)> = None;
            for kind in left {
                let tried: Vec<usize> = chosen.iter().copied().chain([kind]).collect();
                let validated = cross.validate(&tried);
                let kinds = names(kinds, &tried);
                trials.push(Trial { kinds, log_loss: validated.log_loss(), is_chosen: false });
                let helps = best.as_ref().is_none_or(|best| best.is_improved_by(&validated));
                let is_best = found.as_ref().is_none_or(|(_, other)| validated.log_loss() < other.log_loss());
                if helps && is_best {
                    found = Some((kind, validated));
                }
            }
            let Some((kind, validated)) = found else { break };
            chosen.push(kind);
            best = Some(validated);
        }
        let names = names(kinds, &chosen);
        trials.iter_mut().for_each(|trial| trial.is_chosen = trial.kinds == names);
        if let (Some(best), true) = (best, chosen.len() > 1) {
            let runs = observations.iter().zip(best.probabilities);
            let runs = runs.filter_map(|(observation, stated)| observation.run(stated)).collect();
            let fitted = cross.fit(&chosen, None);
            let by_map = observations.iter();
            let by_map = by_map.filter_map(|one| one.run(probability(&fitted, one, &chosen))).collect();
            return Combination { map: named_map(kinds, &chosen, &fitted), runs, by_map, trials };
        }
    }
    let kind = chosen.first().copied().unwrap_or_default();
    let stated = |observation: &Observation| observation.run(*observation.evidence.get(kind)?);
    let runs: Vec<Run> = observations.iter().filter_map(stated).collect();
    let name = kinds.get(kind).copied().unwrap_or_default();
    Combination { map: EvidenceMap::of(name, Sample::new(&runs).map()), runs, by_map: Vec::new(), trials }
}

fn names(kinds: &[&str], chosen: &[usize]) -> Vec<String> {
    chosen.iter().filter_map(|kind| kinds.get(*kind)).map(|kind| (*kind).to_owned()).collect()
}

/// Observations in parts. All runs of a case are in the same part.
struct CrossValidation<'a> {
    observations: &'a [Observation],
    /// For each observation, the number of its case, in the order of their first runs, and its share of the case.
    places: Vec<Place>,
    cases: usize,
}

#[derive(Clone, Copy)]
struct Place {
    case: usize,
    weight: f64,
}

/// What maps say about the cases that they were not fitted to.
struct Validated {
    /// For each observation.
    probabilities: Vec<f64>,
    /// For each case.
    losses: Vec<f64>,
}

impl<'a> CrossValidation<'a> {
    fn new(observations: &'a [Observation]) -> Self {
        let mut numbers: HashMap<usize, (usize, u32)> = HashMap::new();
        for observation in observations {
            let next = numbers.len();
            numbers.entry(observation.case).or_insert((next, 0)).1 += 1;
        }
        let place = |observation: &Observation| {
            let (case, runs) = numbers.get(&observation.case).copied().unwrap_or((0, 1));
            Place { case, weight: 1.0 / f64::from(runs) }
        };
        Self { observations, places: observations.iter().map(place).collect(), cases: numbers.len() }
    }

    /// Fits the map of these kinds to all parts but one.
    fn fit(&self, kinds: &[usize], without: Option<usize>) -> Vec<f64> {
        let mut cases = Cases::new(kinds.len());
        for (observation, place) in self.observations.iter().zip(&self.places) {
            if without != Some(place.case % FOLDS) {
                cases.add(values(observation, kinds), place.weight, observation.right);
            }
        }
        cases.fit()
    }

    fn validate(&self, kinds: &[usize]) -> Validated {
        let maps: Vec<Vec<f64>> = (0..FOLDS).map(|fold| self.fit(kinds, Some(fold))).collect();
        let mut losses = vec![0.0; self.cases];
        let mut probabilities = Vec::with_capacity(self.observations.len());
        for (observation, place) in self.observations.iter().zip(&self.places) {
            let Some(map) = maps.get(place.case % FOLDS) else { continue };
            let probability = probability(map, observation, kinds);
            let of_truth = if observation.right { probability } else { 1.0 - probability };
            losses.iter_mut().skip(place.case).take(1).for_each(|loss| *loss -= place.weight * of_truth.ln());
            probabilities.push(probability);
        }
        Validated { probabilities, losses }
    }
}

fn named_map(names: &[&str], kinds: &[usize], fitted: &[f64]) -> EvidenceMap {
    let slopes = kinds.iter().zip(fitted.iter().skip(1));
    let named = |(kind, slope): (&usize, &f64)| Some(((*names.get(*kind)?).to_owned(), *slope));
    let slopes: BTreeMap<String, f64> = slopes.filter_map(named).collect();
    EvidenceMap { intercept: fitted.first().copied().unwrap_or_default(), slopes }
}

impl Validated {
    fn log_loss(&self) -> f64 {
        mean(&self.losses)
    }

    /// Returns whether the losses of another map are lower by more than the standard error of the difference.
    fn is_improved_by(&self, other: &Self) -> bool {
        let gains: Vec<f64> =
            self.losses.iter().zip(&other.losses).map(|(before, after)| before - after).collect();
        let gain = mean(&gains);
        let squares: f64 = gains.iter().map(|one| (one - gain).powi(2)).sum();
        let cases = gains.len() as f64;
        cases > 1.0 && gain > (squares / (cases - 1.0) / cases).sqrt()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() as f64).max(1.0)
}

fn values<'a>(observation: &'a Observation, kinds: &'a [usize]) -> impl Iterator<Item = f64> + 'a {
    kinds.iter().filter_map(|kind| observation.evidence.get(*kind).copied())
}

/// Returns the probability by a map. It is never 0 or 1, because the slopes and the logits are finite.
fn probability(map: &[f64], observation: &Observation, kinds: &[usize]) -> f64 {
    let terms = std::iter::once(1.0).chain(values(observation, kinds).map(LogisticMap::logit));
    let logit: f64 = map.iter().zip(terms).map(|(value, term)| value * term).sum();
    LogisticMap::probability_at(logit).clamp(1e-12, 1.0 - 1e-12)
}
