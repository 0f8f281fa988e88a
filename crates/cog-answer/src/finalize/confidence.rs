//! Replaces the confidence of an answer with the measured one, and applies the gate of the run and the limits of its tier
//! (docs/calibration.md). All evidence about the answer must be known.

use cog_json::{Node, Value};
use cog_spec::{
    BelowGate, Calibration, Code, ConfidenceSource, Envelope, ErrorBody, Evidence, GateReport, Meta, Outcome,
    Repair, RepairRule, Tier, Warning, WarningCode,
};

use super::{Failure, partial_of_valid};
use crate::{AnswerRules, CalibrationInForce, ConfidenceRules, error};

/// What the runtime says about the confidence of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredConfidence {
    pub(crate) source: ConfidenceSource,
    pub(crate) gate: Option<GateReport>,
}

/// What follows from the confidence of an answer.
#[derive(Default)]
pub(super) struct Judged {
    /// What the confidence is, in a run that asks for a measured one.
    pub(super) measured: Option<MeasuredConfidence>,
    /// Why the confidence is not measured, is low, or the answer is to be reviewed.
    pub(super) warnings: Vec<Warning>,
    /// Why the answer is refused.
    pub(super) refusal: Option<ErrorBody>,
}

/// Measures the confidence of an answer, in a run that asks for it, and compares it with the gate and the tier.
pub(super) fn judge(
    rules: &AnswerRules,
    meta: &mut Meta,
    evidence: &mut Option<Evidence>,
    repairs: &[Repair],
    data: Node<'_>,
) -> Judged {
    let mut judged = measure(rules, meta, evidence, repairs).unwrap_or_default();
    let refusal = overconfident(rules, meta, data).or_else(|| unsure(rules, meta)).or(judged.refusal);
    if refusal.is_none() {
        judged.warnings.extend(low_confidence(rules, meta));
    }
    Judged { refusal, ..judged }
}

/// Measures the confidence, and applies the gate.
fn measure(
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
            meta.confidence = Some(calibration.map.probability_of(score));
            evidence.get_or_insert_default().stated = Some(stated);
            Some((calibration, score))
        }
        Err(why) => {
            let message = format!("The confidence is not measured: {why}.");
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
                .map(|((calibration, _), least)| calibration.map.probability_of(least)),
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
    Some(Judged { measured: Some(MeasuredConfidence { source, gate }), warnings, refusal })
}

/// Returns the calibration that applies, and what it says the confidence of, as the end of a sentence otherwise.
fn score<'a>(
    confidence: &'a ConfidenceRules,
    stated: f64,
    evidence: Option<&Evidence>,
) -> Result<(&'a CalibrationInForce, f64), String> {
    let calibration = confidence.calibration.as_ref();
    let calibration = calibration.map_err(|why| format!("{}. Run `cog calibrate`", why.reason))?;
    let value = |kind: &str| match kind {
        Calibration::STATED => Some(stated),
        kind => evidence.and_then(|evidence| evidence.value(kind)),
    };
    let score = calibration.map.score(value).map_err(|kind| {
        format!("the answer has no `evidence.{kind}`, which its calibration reads. Collect it with `confidence.evidence`, or calibrate without it")
    })?;
    Ok((calibration, score))
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

/// The confidence below which tier decision has a warning (ruling R4).
const LOW_FOR_DECISION: f64 = 0.5;

/// `behavior_equivalence_false_max_confidence` of v2.1.
fn overconfident(rules: &AnswerRules, meta: &Meta, data: Node<'_>) -> Option<ErrorBody> {
    let max = rules.manifest.constraints.behavior_equivalence_false_max_confidence?;
    let differs = data.get("behavior_equivalence").and_then(Node::as_bool) == Some(false);
    let confidence = meta.confidence.filter(|confidence| differs && *confidence > max)?;
    Some(ErrorBody::new(
        Code::ConstraintViolation,
        format!(
            "`data.behavior_equivalence` is false, so confidence may be at most {max}; it is {confidence}"
        ),
    ))
}

/// Ruling R2. A calibration measures also the answers that a run would refuse.
fn unsure(rules: &AnswerRules, meta: &Meta) -> Option<ErrorBody> {
    let tier = rules.manifest.tier.filter(|_| !rules.is_calibration)?;
    let min = tier.min_confidence()?;
    let confidence = meta.confidence.unwrap_or_default();
    (confidence < min).then(|| {
        let message = format!("Confidence is {confidence}; tier {tier} requires at least {min}");
        ErrorBody::new(Code::LowConfidence, message)
            .suggest("The answer is in partial_data: have a person review it, or give more context.")
    })
}

/// Ruling R4.
fn low_confidence(rules: &AnswerRules, meta: &Meta) -> Option<Warning> {
    let confidence = meta.confidence.filter(|confidence| *confidence < LOW_FOR_DECISION)?;
    (rules.manifest.tier == Some(Tier::Decision)).then(|| {
        let message = format!("Confidence is {confidence}, which is low for tier decision.");
        Warning::new(WarningCode::LowConfidence, message)
    })
}

/// The judgement of an answer whose evidence is collected after its reply: what finalizing the reply left open.
#[derive(Debug)]
pub struct DeferredJudgement {
    rules: AnswerRules,
    /// The meta as the model stated it.
    model_meta: Value,
}

impl DeferredJudgement {
    pub(crate) fn new(rules: AnswerRules, model_meta: Value) -> Self {
        Self { rules, model_meta }
    }

    /// Returns the name of the provider that answered.
    pub fn provider(&self) -> &str {
        &self.rules.provider
    }

    /// Judges a successful answer, whose `meta.evidence` is complete. An answer that is refused becomes a failure. Returns whether
    /// the next provider should be asked; `can_ask_next` is whether the caller could.
    pub fn judge(mut self, envelope: &mut Envelope, can_ask_next: bool) -> bool {
        let Some(data) = envelope.data().cloned() else { return false };
        self.rules.has_next &= can_ask_next;
        let rules = &self.rules;
        let mut evidence = envelope.meta.runtime.evidence.take();
        let repairs = std::mem::take(&mut envelope.meta.runtime.repairs);
        let judged = judge(rules, &mut envelope.meta, &mut evidence, &repairs, data.node());
        let runtime = &mut envelope.meta.runtime;
        (runtime.evidence, runtime.repairs) = (evidence, repairs);
        let gate = judged.measured.and_then(|measured| measured.gate);
        envelope.warnings.extend(judged.warnings);
        let Some(error) = judged.refusal else {
            runtime.confidence_source = judged.measured.map(|measured| measured.source);
            runtime.gate = gate;
            return false;
        };
        let asks_next = rules.has_next && rules.asks_next_after(&error);
        let details = error::details(|w| {
            w.field("meta", &self.model_meta);
            w.optional("gate", &gate);
        });
        let failure = Failure::new(error.with_details(details)).without(&rules.keys);
        let partial_data = partial_of_valid(rules, &data);
        let runtime = std::mem::take(runtime);
        envelope.meta = Meta::for_failure(&failure.error.message);
        envelope.meta.runtime = runtime;
        envelope.outcome = Outcome::Failure { error: failure.error, partial_data };
        (envelope.emitted_context, envelope.handoff) = (None, None);
        asks_next
    }
}
