//! Runs one part: starts it, sends its chunks as progress, and waits for its envelope.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use cog_flow::{Callee, Plan};
use cog_json::{ToJson as _, Value};
use cog_spec::{
    Chunk, Code, Envelope, ErrorBody, PartProgress, PartReport, PartStatus, Progress, Risk, Usage, Warning,
};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    PartOptions, Parts, PartsSummary,
    call::{Call, Ended},
    flows::Composed,
};
use crate::ChunkStream;

/// What all calls of a composition share.
pub(super) struct Context {
    pub(super) composed: Arc<Composed>,
    pub(super) parts: Parts,
    /// The progress of the composition in percent.
    pub(super) percent: AtomicU8,
    /// The permits of the calls to models that run at the same time, in this composition and all others of the run.
    pub(super) slots: Arc<Semaphore>,
}

impl Context {
    pub(super) fn new(composed: Arc<Composed>, parts: Parts) -> Self {
        let slots = composed.slots();
        Self { composed, parts, percent: AtomicU8::new(0), slots }
    }

    pub(super) fn plan(&self) -> &Plan {
        self.composed.plan()
    }

    /// Returns whether a call needs a slot. A composition needs none: its parts do, and it would wait for them with a slot that
    /// they need.
    pub(super) fn needs_slot(&self, call: &Call) -> bool {
        let Callee::Part(index) = call.callee else { return true };
        let plan = self.plan().parts.get(index).and_then(|part| part.plan);
        plan.is_none_or(|plan| !self.composed.flow().plan(plan).is_composed())
    }

    /// Runs a part to its end.
    pub(super) async fn run(self: Arc<Self>, call: Call) -> Ended {
        let started = Instant::now();
        let key = self.key(&call);
        let (envelope, restored) = match self.former(&call, key.as_deref()) {
            Some(envelope) => (envelope, true),
            None => (self.answer(&call, key.as_deref()).await, false),
        };
        Ended { call, envelope, time: started.elapsed(), key, restored }
    }

    /// Returns the answer that a call had in an earlier run; none if it had none.
    fn former(&self, call: &Call, key: Option<&str>) -> Option<Value> {
        let finished = self.parts.finished()?;
        let envelope = finished.get(&call.path, key?)?.clone();
        self.parts.restore(call.module.as_ref()?, &envelope);
        Some(envelope)
    }

    /// Sends a progress chunk about a part.
    pub(super) fn report(&self, message: Option<String>, part: PartProgress) {
        self.parts.progress(self.percent.load(Ordering::Relaxed), message, part);
    }

    async fn answer(&self, call: &Call, key: Option<&str>) -> Value {
        let envelope = match self.start(call, key) {
            Ok(chunks) => chunks.fold_with(|chunk| self.forward(&call.path, chunk)).await,
            Err(error) => Envelope::failure(error),
        };
        Value::parse(&envelope.to_json()).unwrap_or_default()
    }

    fn start(&self, call: &Call, key: Option<&str>) -> Result<ChunkStream, ErrorBody> {
        let input = call.input.clone();
        let mut part = PartOptions::default();
        part.timeout = call.timeout;
        (part.path, part.key) = (call.path.clone(), key.map(str::to_owned));
        let Callee::Part(index) = call.callee else {
            return self.parts.start_own(input, call.texts.clone(), part);
        };
        let Some(module) = &call.module else { return Err(missing(&call.name)) };
        let plan = self.plan().parts.get(index).and_then(|part| part.plan);
        let composed = plan.and_then(|plan| self.composed.part(plan, &self.slots));
        part.composed = composed.map(|composed| composed as _);
        self.parts.start(module, input, part)
    }

    /// Returns the key under which the answer of a call is recorded; none if answers are not recorded.
    fn key(&self, call: &Call) -> Option<String> {
        let may_halt = self.parts.can_halt() && self.composed.may_call_tools();
        if !may_halt && self.parts.finished().is_none() {
            return None;
        }
        let digest = match call.callee {
            Callee::Own => self.composed.digest(),
            Callee::Part(index) => self.composed.part_digest(index)?,
        };
        let tier = call.module.as_ref().and_then(|module| module.manifest.tier);
        Some(digest.key(&call.input, &call.texts, &format!("{tier:?}"), self.parts.options()))
    }

    /// Sends a chunk of a part as progress. The violations of a part are not those of the composition.
    fn forward(&self, path: &str, chunk: &Chunk) {
        let own = || PartProgress { path: path.to_owned(), ..PartProgress::default() };
        match chunk {
            Chunk::Delta { field, delta, .. } => {
                let (field, delta) = (Some(field.clone()), Some(delta.clone()));
                self.report(None, PartProgress { field, delta, ..own() });
            }
            Chunk::Snapshot { field, data, .. } if field.as_deref() != Some("meta") => {
                let (field, data) = (field.clone(), Some(data.clone()));
                self.report(None, PartProgress { field, data, ..own() });
            }
            Chunk::Progress(Progress { part: Some(part), message, .. }) => {
                self.report(message.as_ref().map(|message| format!("{path}/{message}")), inside(path, part));
            }
            Chunk::Progress(progress) => {
                let violation = progress.violation.as_ref();
                let violation = violation.map(|found| format!("{}: {}", found.path, found.message));
                let message = violation.or_else(|| progress.description());
                self.report(message.map(|message| format!("{path}: {message}")), own());
            }
            Chunk::Meta { .. } | Chunk::Snapshot { .. } | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
    }
}

/// Returns the progress of a part of a part.
fn inside(path: &str, part: &PartProgress) -> PartProgress {
    let mut part = PartProgress { path: format!("{path}/{}", part.path), ..part.clone() };
    if let Some(report) = &mut part.report {
        report.path = format!("{path}/{}", report.path);
    }
    part
}

fn missing(name: &str) -> ErrorBody {
    ErrorBody::new(Code::ModuleNotFound, format!("module `{name}` was not found"))
        .suggest("Install it, or remove it from the composition; `cog list` shows all modules.")
}

// What became of each part.

/// The reports about the calls of a composition, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct Reports {
    entries: Vec<Vec<PartReport>>,
    /// What each call has emitted, by its entry.
    emitted: BTreeMap<usize, Value>,
    /// The entry of each path.
    by_path: HashMap<String, usize>,
    /// The number of calls that have ended.
    ended: usize,
    warnings: Vec<Warning>,
}

impl Reports {
    /// Adds a call that has started.
    pub(super) fn start(&mut self, report: PartReport) {
        self.by_path.insert(report.path.clone(), self.entries.len());
        self.entries.push(vec![report]);
    }

    /// Replaces the report about a call by those about its end and its own parts.
    pub(super) fn end(&mut self, reports: Vec<PartReport>) {
        let Some(path) = reports.first().map(|report| &report.path) else { return };
        let entry = self.by_path.get(path).and_then(|index| self.entries.get_mut(*index));
        if let Some(entry) = entry {
            *entry = reports;
            self.ended += 1;
        }
    }

    /// Adds what a call has emitted.
    pub(super) fn emit(&mut self, path: &str, emitted: Value) {
        if let Some(index) = self.by_path.get(path) {
            self.emitted.insert(*index, emitted);
        }
    }

    /// Returns what the calls have emitted, in the order in which they started.
    pub(super) fn emitted(&self) -> impl Iterator<Item = &Value> {
        self.emitted.values()
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Returns the number of calls.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of calls that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended
    }

    /// Returns the reports about the calls that are done, without those about their own parts.
    pub(super) fn done(&self) -> impl Iterator<Item = &PartReport> {
        self.entries
            .iter()
            .filter_map(|entry| entry.first())
            .filter(|report| report.status == PartStatus::Done)
    }

    /// Ends the composition. Calls that still run are cancelled.
    pub(super) fn close(mut self) -> PartsSummary {
        self.entries.iter_mut().flatten().for_each(close);
        let (usage, risk, warnings) = (self.usage(), self.max_risk(), self.warnings);
        PartsSummary { reports: self.entries.into_iter().flatten().collect(), usage, risk, warnings }
    }

    /// Returns the tokens and the cost of all calls. The cost is unknown if that of one call is.
    fn usage(&self) -> Option<Usage> {
        let usages = self.entries.iter().filter_map(|entry| entry.first()?.usage.clone());
        usages.reduce(|sum, usage| sum.plus(&usage))
    }

    /// Returns the smallest confidence of the calls that are done.
    pub(super) fn min_confidence(&self) -> Option<f64> {
        self.done().filter_map(|report| report.confidence).min_by(f64::total_cmp)
    }

    /// Returns the greatest risk of the calls that are done.
    pub(super) fn max_risk(&self) -> Option<Risk> {
        self.done().filter_map(|report| report.risk).max()
    }
}

/// Ends a call that was dropped. Its tokens are unknown.
fn close(report: &mut PartReport) {
    if report.status == PartStatus::Running {
        report.status = PartStatus::Cancelled;
        report.usage = Some(Usage { uncounted_calls: Some(1), ..Usage::default() });
    }
}
