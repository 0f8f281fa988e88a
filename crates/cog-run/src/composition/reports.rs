//! The reports about the parts of a composition, for `meta.parts`.

use std::collections::{BTreeMap, HashMap};

use cog_answer::PartsSummary;
use cog_json::Value;
use cog_spec::{PartReport, PartStatus, Risk, Usage, Warning};

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
        PartsSummary {
            usage: self.usage(),
            risk: self.max_risk(),
            reports: self.entries.into_iter().flatten().collect(),
            warnings: self.warnings,
        }
    }

    /// Returns the tokens and the cost of all calls. The cost is unknown if the cost of one call is.
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

/// Returns `style: done, confidence 0.93, $0.01`.
pub(super) fn describe(report: &PartReport) -> String {
    let mut text = format!("{}: {}", report.path, report.status);
    if let Some(error) = &report.error {
        text += &format!(", {}: {}", error.code, error.message);
    }
    if let Some(confidence) = report.confidence {
        text += &format!(", confidence {confidence:.2}");
    }
    if let Some(cost) = report.usage.as_ref().and_then(|usage| usage.cost) {
        text += &format!(", {cost}");
    }
    text
}
