//! `calibration.json` of a module: what the confidence of each model was worth on cases with a known truth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Effort, Form, forms_file};

/// `calibration.json` of a module. `cog calibrate` writes it, and a run with a gate reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFile {
    /// The version of this format: [`CalibrationFile::VERSION`].
    pub version: u32,
    /// At most one calibration per provider, model and effort.
    pub calibrations: Vec<Calibration>,
}

impl CalibrationFile {
    /// The name of the file in the directory of a module.
    pub const NAME: &'static str = "calibration.json";

    /// The version of the format that this program reads and writes.
    pub const VERSION: u32 = 1;
}

/// What the confidence of one model was worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The name of the provider.
    pub provider: String,
    /// The name of the model.
    pub model: String,
    /// How much the model was asked to think, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The form in which the model was asked.
    #[serde(serialize_with = "forms_file::write_form", deserialize_with = "forms_file::read_form")]
    pub form: &'static Form,
    /// What the runs of the cases were asked to collect, as [`EvidenceRequest`](crate::EvidenceRequest) writes it.
    pub collected: String,
    /// The map from the evidence to a probability.
    pub map: EvidenceMap,
    /// The cases by their scores ([`EvidenceMap::score`]), from the highest to the lowest. If the map reads several kinds of
    /// evidence, the score of a case is by a map that was fitted without it, so that a gate promises no more than it keeps.
    pub scores: Vec<ScoreCount>,
    /// The cases by the map itself, which recent runs are compared with; empty if `scores` are these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<ScoreCount>,
    /// The SHA-256 of manifest, prompt and schema. If they change, the calibration is stale.
    pub module: String,
    /// The SHA-256 of the other members. A calibration that was edited is stale.
    pub checksum: String,
}

impl Calibration {
    /// The name of the confidence that an answer has without a calibration, among the kinds of evidence.
    pub const STATED: &'static str = "stated";

    /// The digits after the point that count in a score.
    const DIGITS: f64 = 10_000.0;

    /// Rounds a number to the precision of the scores, so that a file has at most 10,001 of them.
    pub fn rounded(score: f64) -> f64 {
        (score * Self::DIGITS).round() / Self::DIGITS
    }

    /// Returns the number of cases, and how many of them are right.
    pub fn cases(&self) -> ScoreTotal {
        self.scores.iter().fold(ScoreTotal::default(), |total, count| ScoreTotal {
            cases: total.cases.saturating_add(count.cases),
            right: total.right.saturating_add(count.right),
        })
    }
}

/// The number of cases of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScoreTotal {
    /// All cases.
    pub cases: u64,
    /// The ones with a right answer.
    pub right: u64,
}

/// The cases with the same score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreCount {
    /// The score, from 0 to 1, with at most four digits after the point.
    pub score: f64,
    /// The number of cases, at least 1.
    pub cases: u64,
    /// The number of right answers among them.
    pub right: u64,
}

/// A logistic map of one or several kinds of evidence: the logit of the probability is the intercept plus the sum of
/// `slope * logit(evidence)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceMap {
    /// What is added: negative for answers that are right less often than their evidence says.
    pub intercept: f64,
    /// The slope of each kind: [`Calibration::STATED`], or a number of `meta.evidence` by its name.
    pub slopes: BTreeMap<String, f64>,
}

impl EvidenceMap {
    /// Creates the map of one kind of evidence.
    pub fn of(kind: &str, map: LogisticMap) -> Self {
        Self { intercept: map.intercept, slopes: BTreeMap::from([(kind.to_owned(), map.slope)]) }
    }

    /// Returns the map of the only kind; none of several kinds.
    pub fn single(&self) -> Option<LogisticMap> {
        match self.slopes.len() {
            1 => self
                .slopes
                .values()
                .next()
                .map(|slope| LogisticMap { intercept: self.intercept, slope: *slope }),
            _ => None,
        }
    }

    /// Returns the kinds of evidence that it reads.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.slopes.keys().map(String::as_str)
    }

    /// Returns the number by which answers are ordered and compared with a threshold: the evidence itself if it is of one kind,
    /// otherwise the probability. It is rounded as [`Calibration::rounded`] does.
    ///
    /// `value` returns the number of a kind, from 0 to 1.
    ///
    /// # Errors
    /// The kind of which the answer has no evidence. Evidence that is absent is never taken as 0.
    pub fn score(&self, value: impl Fn(&str) -> Option<f64>) -> Result<f64, &str> {
        let mut logit = self.intercept;
        let mut last = 0.0;
        for (kind, slope) in &self.slopes {
            last = value(kind).filter(|value| value.is_finite()).ok_or(kind.as_str())?;
            logit += slope * LogisticMap::logit(last);
        }
        let score = if self.slopes.len() == 1 { last } else { LogisticMap::probability_at(logit) };
        Ok(Calibration::rounded(score))
    }

    /// Returns the probability that an answer with this score is right, rounded as the score is.
    pub fn probability_of(&self, score: f64) -> f64 {
        Calibration::rounded(self.single().map_or(score, |map| map.probability(score)))
    }
}

/// A logistic map: the logit of the probability is `intercept + slope * logit(stated)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogisticMap {
    /// What is added: negative for a model that states too much.
    pub intercept: f64,
    /// By what the logit is multiplied: below 1 for a model whose confidence says little.
    pub slope: f64,
}

impl LogisticMap {
    /// The map that changes nothing.
    pub const AS_STATED: Self = Self { intercept: 0.0, slope: 1.0 };

    /// A stated confidence of 0 or 1 counts as one so far from it: nothing is certain, and its logit would be infinite.
    const MARGIN: f64 = 0.005;

    /// Returns the probability that an answer with this confidence is right.
    pub fn probability(&self, stated: f64) -> f64 {
        Self::probability_at(self.at(Self::logit(stated)))
    }

    /// Returns the probability whose logit this is.
    pub fn probability_at(logit: f64) -> f64 {
        1.0 / (1.0 + (-logit).exp())
    }

    /// Returns the logit of the probability at a logit.
    pub fn at(&self, logit: f64) -> f64 {
        self.intercept + self.slope * logit
    }

    /// Returns the logit of a stated confidence.
    pub fn logit(stated: f64) -> f64 {
        let stated = stated.clamp(Self::MARGIN, 1.0 - Self::MARGIN);
        (stated / (1.0 - stated)).ln()
    }
}
