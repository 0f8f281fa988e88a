//! The measured confidence of a run, and the gate that its answer must pass (docs/calibration.md).

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cog_answer::{CalibrationInForce, ConfidenceRules, Uncalibrated};
use cog_module::{
    Module,
    calibration::{CalibrationEntry, CalibrationKey, Calibrations},
};
use cog_provider::{ModelRequest, Provider};
use cog_spec::{BelowGate, Calibration, CalibrationReport, EvidenceRequest, GateRule, RequiredSource};
use cog_trust::{Gate, Goal, Rate, interval};

use crate::{RunOptions, request};

/// The confidence of the interval in `meta.calibration`.
const INTERVAL: f64 = 0.95;

/// The calibrations of the modules of a runtime.
pub(crate) struct CalibrationStore {
    /// The user's state directory, for modules that are built in.
    state: Option<PathBuf>,
    /// The interval after which a file is read again.
    reload_interval: Duration,
    read: Mutex<HashMap<PathBuf, ReadFile>>,
}

struct ReadFile {
    at: Instant,
    calibrations: Arc<Calibrations>,
}

impl CalibrationStore {
    pub(crate) fn new(state: Option<PathBuf>, reload_interval: Duration) -> Self {
        Self { state, reload_interval, read: Mutex::default() }
    }

    fn get(&self, module: &Module) -> Arc<Calibrations> {
        let state = self.state.as_deref();
        let Some(path) = module.calibration_file(state) else { return Arc::default() };
        if let Some(calibrations) = self.cached(&path) {
            return calibrations;
        }
        // Two runs may read it at the same time, which costs less than a lock around the read.
        let calibrations = Arc::new(module.calibrations(state));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(path, ReadFile { at: Instant::now(), calibrations: Arc::clone(&calibrations) });
        calibrations
    }

    fn cached(&self, path: &Path) -> Option<Arc<Calibrations>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let file = read.get(path).filter(|file| file.at.elapsed() < self.reload_interval)?;
        Some(Arc::clone(&file.calibrations))
    }
}

/// What a run requires of the confidence of its answer.
pub(crate) struct RequiredConfidence {
    calibrations: Arc<Calibrations>,
    gate: Option<GateRule>,
    below: BelowGate,
    /// What is collected about the answer.
    evidence: EvidenceRequest,
}

impl RequiredConfidence {
    /// Returns what the manifest and the options require; none if they take the confidence as the model states it. `evidence` is what
    /// is collected about the answer.
    pub(crate) fn new(
        store: &CalibrationStore,
        module: &Module,
        options: &RunOptions,
        evidence: &EvidenceRequest,
    ) -> Option<Self> {
        let rule = module.manifest.confidence;
        if rule.source == RequiredSource::Stated && options.accept.is_none() {
            return None;
        }
        let own = rule.gate;
        // A caller may ask for more than the module does, never for less.
        let gate = options.accept.map_or(own, |accept| {
            let accuracy = own.map_or(accept, |own| own.accuracy.max(accept));
            Some(GateRule { accuracy, risk: own.map_or(GateRule::RISK, |own| own.risk) })
        });
        Some(Self { calibrations: store.get(module), gate, below: rule.below, evidence: evidence.clone() })
    }

    /// Returns the rules for the answer of the model that a request is sent to.
    pub(crate) fn rules(
        &self,
        module: &Module,
        provider: &dyn Provider,
        request: &ModelRequest,
    ) -> Arc<ConfidenceRules> {
        let key = key_of(provider, request, self.evidence.clone());
        let calibration = match self.calibrations.find(module, &key) {
            CalibrationEntry::Valid(calibration) => Ok(CalibrationInForce {
                map: calibration.map.clone(),
                threshold: self.gate.and_then(|gate| threshold(calibration, gate)),
                report: report(calibration, false),
            }),
            CalibrationEntry::Stale(calibration, why) => Err(Uncalibrated {
                reason: format!("the calibration of {}/{} is stale, because {why}", key.provider, key.model),
                report: Some(report(calibration, true)),
            }),
            CalibrationEntry::Missing(reason) => Err(Uncalibrated { reason, report: None }),
        };
        Arc::new(ConfidenceRules { calibration, gate: self.gate, below: self.below })
    }
}

/// Returns what a calibration of the model of a request is found by, in a run that collects this evidence.
pub(crate) fn key_of(
    provider: &dyn Provider,
    request: &ModelRequest,
    evidence: EvidenceRequest,
) -> CalibrationKey {
    CalibrationKey {
        provider: provider.info().name.clone().into_owned(),
        model: request::model_of(request, provider).to_owned(),
        effort: request.generation.effort,
        form: request::form_of(request),
        evidence,
    }
}

/// Returns the lowest score that a gate accepts; none if no threshold can be promised.
fn threshold(calibration: &Calibration, gate: GateRule) -> Option<f64> {
    match Goal::new(gate.accuracy, gate.risk)?.gate_of_scores(&calibration.scores) {
        Gate::Threshold { threshold, .. } => Some(threshold),
        Gate::Needed { .. } => None,
    }
}

fn report(calibration: &Calibration, stale: bool) -> CalibrationReport {
    let total = calibration.cases();
    let rate = Rate::new(total.right, total.cases).filter(|rate| rate.cases() > 0);
    let bounds = rate.map_or(interval::Interval::UNKNOWN, |rate| interval::exact(rate, INTERVAL));
    CalibrationReport {
        cases: total.cases,
        accuracy: Calibration::rounded(rate.and_then(Rate::share).unwrap_or_default()),
        interval: [bounds.low, bounds.high].map(Calibration::rounded),
        stale,
    }
}
