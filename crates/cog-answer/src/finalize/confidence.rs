//! Replaces the confidence of an answer with the measured one, and applies the gate of the run (docs/calibration.md).

use cog_spec::{
    BelowGate, Calibration, Code, ConfidenceSource, ErrorBody, Evidence, GateReport, Meta, Repair,
    RepairRule, Warning, WarningCode,
};

use crate::{AnswerRules, CalibrationInForce, ConfidenceRules};

/// What the runtime says about the confidence of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredConfidence {
    pub(crate) source: ConfidenceSource,
    pub(crate) gate: Option<GateReport>,
}

/// A confidence, with what follows from it.
pub(super) struct Judged {
    pub(super) measured: MeasuredConfidence,
    /// Why the confidence is not measured, or the answer is to be reviewed.
    pub(super) warnings: Vec<Warning>,
    /// Why the answer is refused.
    pub(super) refusal: Option<ErrorBody>,
}

/// Measures the confidence of an answer, in a run that asks for it.
pub(super) fn judge(
    rules: &AnswerRules,
    meta: &mut Meta,
    evidence: &mut Option<Evidence>,
    repairs: &[Repair],
) -> Option<Judged> {
    let confidence = rules.confidence.as_deref()?;
    let stated = meta.confidence.unwrap_or_default();
    let has_probabilities = evidence.as_ref().is_some_and(|evidence| evidence.logprob.is_some());
    let is_filled = repairs.iter().any(|repair| repair.rule == RepairRule::FillConfidence);
    let mut warnings = Vec::new();
    let mut source = match (has_probabilities, is_filled) {
        (true, _) => ConfidenceSource::Logprob,
        (false, true) => ConfidenceSource::Filled,
        (false, false) => ConfidenceSource::Stated,
    };
    let score = match score(confidence, stated, evidence.as_ref()) {
        Ok((calibration, score)) => {
            source = ConfidenceSource::Calibrated;
            meta.confidence = Some(Calibration::rounded(calibration.map.probability(score)));
            evidence.get_or_insert_default().stated = Some(stated);
            Some((calibration, score))
        }
        Err(why) => {
            let message = format!("The confidence is not measured: {why}. Run `cog calibrate`.");
            warnings.push(Warning::new(WarningCode::NotCalibrated, message));
            None
        }
    };
    let gate = confidence.gate.map(|gate| {
        let threshold = score.and_then(|(calibration, _)| calibration.threshold);
        GateReport {
            accuracy: gate.accuracy,
            // In the units of `meta.confidence`, so that a reader can compare them.
            threshold: score
                .zip(threshold)
                .map(|((calibration, _), least)| Calibration::rounded(calibration.map.probability(least))),
            // In the units of the cases: their order is what the promise was tested in.
            passed: score.zip(threshold).is_some_and(|((_, score), least)| score >= least),
        }
    });
    let mut refusal = None;
    if let Some(gate) = gate.filter(|gate| !gate.passed) {
        let why = not_passed(meta, gate, score.is_some());
        let asks_next = confidence.below == BelowGate::Next && rules.has_next;
        if asks_next || confidence.below == BelowGate::Fail {
            refusal = Some(
                ErrorBody::new(Code::LowConfidence, why)
                    .suggest("The answer is in partial_data: have a person review it, or ask another model."),
            );
        } else {
            let message = format!("The answer needs a review: {why}.");
            warnings.push(Warning::new(WarningCode::GateNotPassed, message));
        }
    }
    Some(Judged { measured: MeasuredConfidence { source, gate }, warnings, refusal })
}

/// Returns the calibration that applies, and what it says the confidence of, as the end of a sentence otherwise.
fn score<'a>(
    confidence: &'a ConfidenceRules,
    stated: f64,
    evidence: Option<&Evidence>,
) -> Result<(&'a CalibrationInForce, f64), String> {
    let calibration = confidence.calibration.as_ref().map_err(|why| why.reason.clone())?;
    let kind = calibration.evidence.as_str();
    let value = match kind {
        Calibration::STATED => Some(stated),
        // Evidence that a provider leaves out is absent, never 0.
        kind => evidence.and_then(|evidence| evidence.value(kind)),
    };
    let value = value.filter(|value| value.is_finite());
    value
        .map(|value| (calibration, Calibration::rounded(value)))
        .ok_or_else(|| format!("the answer has no `evidence.{kind}`, which its calibration reads"))
}

fn not_passed(meta: &Meta, gate: GateReport, is_measured: bool) -> String {
    let accuracy = gate.accuracy;
    match (is_measured, gate.threshold, meta.confidence) {
        (true, Some(threshold), Some(confidence)) => format!(
            "its confidence is {confidence}, and {threshold} or more is needed for an accuracy of {accuracy}"
        ),
        (true, ..) => format!("no threshold can be promised for an accuracy of {accuracy}"),
        (false, ..) => {
            format!("the gate requires an accuracy of {accuracy}, and the confidence is not measured")
        }
    }
}
