//! `calibration.json` of a module: what the confidence of each model was worth on cases with a known truth.

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
    /// The number that the map reads: [`Calibration::STATED`], or the name of a number in `meta.evidence`.
    pub evidence: String,
    /// The map from this number to a probability.
    pub map: LogisticMap,
    /// The cases, from the highest number to the lowest.
    pub scores: Vec<ScoreCount>,
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
        1.0 / (1.0 + (-self.at(Self::logit(stated))).exp())
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
