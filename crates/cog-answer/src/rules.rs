use std::sync::Arc;

use cog_harmony::{citation::Sources, handoff::Handoff};
use cog_json::{Limits, Value};
use cog_rules::Checks;
use cog_schema::Contract;
use cog_spec::{
    BelowGate, CalibrationReport, Code, Dialect, ErrorBody, EvidenceMap, Form, GateRule, Manifest,
    OnViolation, Response, Risk, RuntimeMeta, Secret, Warning,
};

/// The requirements for one run's answer, and what is known of the run before the reply.
#[derive(Debug, Clone)]
pub struct AnswerRules {
    /// The session ID in the first chunk and in errors.
    pub session_id: String,
    /// The module's manifest.
    pub manifest: Arc<Manifest>,
    /// The module's contract.
    pub contract: Arc<Contract>,
    /// The named checks of the module.
    pub checks: Arc<Checks>,
    /// The form of emitted data and the reaction to violations: from the manifest, or set by the caller. `mode` is
    /// ignored.
    pub response: Response,
    /// The provider's name. `meta.model` is `PROVIDER/MODEL` once the reply names its model.
    pub provider: String,
    /// The dialect of the request. In OpenAI's strict dialect a null may stand for an omitted member.
    pub dialect: Dialect,
    /// The form in which the model was asked (ruling R91).
    pub form: &'static Form,
    /// How the confidence is measured, and the gate; none if the run takes the confidence as the model states it.
    pub confidence: Option<Arc<ConfidenceRules>>,
    /// Whether more evidence is collected after the reply, so that [`DeferredJudgement`](crate::DeferredJudgement) judges the
    /// confidence.
    pub defers_confidence: bool,
    /// Whether the answer is one of a calibration: a low confidence does not refuse it.
    pub is_calibration: bool,
    /// Whether another provider can be called after a bad answer.
    pub has_next: bool,
    /// Whether it is called after an answer that fails, not only after one that does not pass its gate.
    pub escalates: bool,
    /// Any repair is a violation (ruling R26).
    pub strict: bool,
    /// Whether a caller reads the chunks as they arrive. Otherwise only those that the envelope needs are created: the
    /// last, and the meta of a failure. Values are then checked early only if `response.on_violation` is abort or retry
    /// (rulings R48, R49).
    pub is_streamed: bool,
    /// Whether the model may call tools, so that text before its calls is not a failed answer.
    pub calls_tools: bool,
    /// The greatest risk of the parts of a composition. The answer has at least this risk, unless the manifest says
    /// `meta.risk_rule: explicit`.
    pub parts_risk: Option<Risk>,
    /// Whether the parts of a composition give the answer, so that no model is called for it.
    pub is_from_parts: bool,
    /// Whether the run is a part of a composition, which counts also the calls without known tokens.
    pub is_part: bool,
    /// The meta of the run before the reply: the model, the trace, the media.
    pub runtime: RuntimeMeta,
    /// The warnings of the run so far.
    pub warnings: Vec<Warning>,
    /// The keys of all providers of the run. Messages of the runtime never contain them. An answer that contains one is
    /// not changed.
    pub keys: Vec<Secret>,
    /// The maximum size of an answer.
    pub limits: Limits,
    /// The last `seq` of the stream that this one resumes; none for a new stream (docs/spec/streaming.md).
    pub resume_from: Option<u64>,
    /// How an interrupted stream can be resumed; none if it cannot.
    pub recovery: Option<RecoveryOffer>,
    /// The packet that the run received, and the agent that it hands over to.
    pub handoff: HandoffRules,
    /// The input of the run, whose texts citations may name as sources.
    pub input: Option<Value>,
    /// The media of the input that citations name as sources.
    pub sources: Sources,
}

/// How the confidence of a run is measured, and what an answer needs to be accepted (docs/calibration.md).
#[derive(Debug, Clone)]
pub struct ConfidenceRules {
    /// The calibration of the model that answers, or why none applies.
    pub calibration: Result<CalibrationInForce, Uncalibrated>,
    /// What an answer needs to be accepted; none if every answer is.
    pub gate: Option<GateRule>,
    /// What happens to an answer that is not accepted.
    pub below: BelowGate,
}

/// A calibration that applies to the model that answers.
#[derive(Debug, Clone)]
pub struct CalibrationInForce {
    /// The map to a probability.
    pub map: EvidenceMap,
    /// The lowest score that the gate accepts; none if no threshold can be promised.
    pub threshold: Option<f64>,
    /// The cases, for `meta.calibration`.
    pub report: CalibrationReport,
}

/// Why no calibration applies.
#[derive(Debug, Clone)]
pub struct Uncalibrated {
    /// The reason, as the end of a sentence.
    pub reason: String,
    /// The cases of a calibration that is stale.
    pub report: Option<CalibrationReport>,
}

impl ConfidenceRules {
    /// Returns the cases of the calibration, for `meta.calibration`.
    pub fn report(&self) -> Option<CalibrationReport> {
        match &self.calibration {
            Ok(calibration) => Some(calibration.report),
            Err(uncalibrated) => uncalibrated.report,
        }
    }
}

/// The packet that a run received, and the agent that it hands over to (docs/handoff.md).
#[derive(Debug, Clone, Default)]
pub struct HandoffRules {
    /// The packet that the run received as its input. A handoff in the answer must follow it.
    pub parent: Option<Handoff>,
    /// The agent that receives the next packet; none to create no packet.
    pub target: Option<HandoffTarget>,
}

/// The agent that receives the packet of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffTarget {
    /// Its name.
    pub agent: String,
    /// The time in the packet, as RFC 3339.
    pub timestamp: String,
}

/// How an interrupted stream (E2010, E2011) can be resumed: `error.recovery` (docs/spec/streaming.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryOffer {
    /// The time to wait before a retry, in milliseconds.
    pub retry_after_ms: u64,
    /// The maximum number of retries.
    pub max_retries: u32,
}

impl AnswerRules {
    /// Creates the rules from a module's manifest and contract.
    pub fn new(session_id: impl Into<String>, manifest: Arc<Manifest>, contract: Arc<Contract>) -> Self {
        Self {
            session_id: session_id.into(),
            response: manifest.response,
            manifest,
            contract,
            checks: Arc::default(),
            provider: String::new(),
            dialect: Dialect::Prompt,
            form: Form::ENVELOPE,
            confidence: None,
            defers_confidence: false,
            is_calibration: false,
            has_next: false,
            escalates: false,
            strict: false,
            is_streamed: true,
            calls_tools: false,
            parts_risk: None,
            is_from_parts: false,
            is_part: false,
            runtime: RuntimeMeta::default(),
            warnings: Vec::new(),
            keys: Vec::new(),
            limits: Limits::model_output(),
            resume_from: None,
            recovery: None,
            handoff: HandoffRules::default(),
            input: None,
            sources: Sources::new(),
        }
    }

    /// Returns whether the module generates media that its answer has slots for (SPEC 2.2, `modalities.output`).
    pub fn makes_media(&self) -> bool {
        self.manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty())
            && self.contract.has_media_outputs()
    }

    /// The maximum number of model calls (rulings R49, R73). The parts of a composition do not run again.
    pub(crate) fn attempts(&self) -> u32 {
        if self.is_from_parts { 1 } else { self.response.attempts(self.manifest.tier) }
    }

    /// Returns whether the model was asked for its data without an envelope, by the format of the module or by the form.
    pub(crate) fn expects_data(&self) -> bool {
        self.form.is_data() || !self.manifest.format.asks_for_envelope()
    }

    /// Returns whether the model was asked for its data although the format of the module has envelopes, so that it states no meta
    /// (ruling R91).
    pub(crate) fn is_without_meta(&self) -> bool {
        self.form.is_data() && self.manifest.format.asks_for_envelope()
    }

    /// Returns whether the first violation stops the provider (ruling R49). Otherwise the answer is checked at its end.
    pub(crate) fn stops_at_violations(&self) -> bool {
        matches!(self.response.on_violation, Some(OnViolation::Abort | OnViolation::Retry))
    }

    /// Returns whether the next provider is asked, if there is one, because the answer has this error. It is neither a violation of
    /// the contract nor an error that the model reports.
    pub(crate) fn asks_next_after(&self, error: &ErrorBody) -> bool {
        let is_unsure = error.code == Code::LowConfidence.into();
        let is_gated = self.confidence.as_ref().is_some_and(|confidence| confidence.below == BelowGate::Next);
        let is_bad = [Code::LowConfidence, Code::ConstraintViolation, Code::TokenLimit]
            .iter()
            .any(|code| error.code == (*code).into());
        (self.escalates && is_bad) || (is_unsure && is_gated)
    }

    /// Masks the keys in text of the runtime.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.keys.iter().fold(text.to_owned(), |text, key| key.redact(&text))
    }
}
