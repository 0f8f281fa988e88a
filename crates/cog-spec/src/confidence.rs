//! What the confidence of an answer is, and the gate that it must pass.

use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

/// `confidence` of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ConfidenceRule {
    /// The confidence that a run should have.
    pub source: RequiredSource,
    /// What an answer needs to be accepted; none if every answer is.
    pub gate: Option<GateRule>,
    /// What happens to an answer that does not pass its gate.
    pub below: BelowGate,
}

string_enum! {
    /// `confidence.source` of a manifest: the confidence that a run should have.
    #[derive(Default)]
    RequiredSource {
        /// The one that the model states.
        #[default]
        Stated = "stated",
        /// The probability that `calibration.json` gives it.
        Calibrated = "calibrated",
    }
}

/// `confidence.gate` of a manifest: at least `accuracy` of the accepted answers are right, and this is broken in at most `risk` of
/// calibrations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateRule {
    /// The share of right answers among the accepted ones.
    pub accuracy: f64,
    /// The share of calibrations that may break the promise.
    pub risk: f64,
}

impl GateRule {
    /// The default of `risk`.
    pub const RISK: f64 = 0.1;

    /// The values that `accuracy` and `risk` may have.
    pub const RANGE: std::ops::RangeInclusive<f64> = 0.001..=0.999;
}

string_enum! {
    /// `confidence.below` of a manifest: what happens to an answer that does not pass its gate.
    #[derive(Default)]
    BelowGate {
        /// It is returned, and marked for a review.
        #[default]
        Review = "review",
        /// The next provider of the run is asked. After the last one, the answer is marked for a review.
        Next = "next",
        /// The run fails with E2001.
        Fail = "fail",
    }
}

string_enum! {
    /// `meta.confidence_source`: what `meta.confidence` is.
    ConfidenceSource {
        /// The model states it.
        Stated = "stated",
        /// The probability of the tokens of the deciding fields.
        Logprob = "logprob",
        /// A default, because the model stated none.
        Filled = "filled",
        /// The probability that a calibration gives it.
        Calibrated = "calibrated",
    }
}

/// `meta.calibration`: the cases behind the calibration of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "calibration"))]
pub struct CalibrationReport {
    /// The number of cases.
    pub cases: u64,
    /// The share of right answers among them.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub accuracy: f64,
    /// The exact 95 % interval of the accuracy.
    pub interval: [f64; 2],
    /// Whether it does not apply to this run, so that the confidence is not measured.
    pub stale: bool,
}

/// `meta.gate`: what the gate of a run says about its answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "gate"))]
pub struct GateReport {
    /// The share of accepted answers that should be right.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub accuracy: f64,
    /// The lowest confidence that is accepted; null if no threshold can be promised.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub threshold: Option<f64>,
    /// Whether the answer is accepted.
    pub passed: bool,
}
