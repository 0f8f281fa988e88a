//! The answers of the runs of a collection, and what all of them cost.

use std::time::Duration;

use cog_answer::evidence::Decision;
use cog_json::Value;
use cog_spec::{Code, Envelope, ErrorBody, ErrorCode, ErrorOrigin, Outcome, Usage};

/// What the runs of a collection cost.
#[derive(Default)]
pub(super) struct Costs {
    usage: Option<Usage>,
    calls: u32,
}

impl Costs {
    /// Adds the tokens and the calls of a run to the sums.
    pub(super) fn count(&mut self, envelope: &Envelope) {
        let runtime = &envelope.meta.runtime;
        // A run that was refused before its call names no model.
        if runtime.model.is_some() {
            self.calls = self.calls.saturating_add(runtime.attempts.unwrap_or(1));
        }
        self.usage = match (self.usage.take(), &runtime.usage) {
            (Some(sum), Some(usage)) => Some(sum.plus(usage)),
            (sum, usage) => sum.or_else(|| usage.clone()),
        };
    }

    /// Sets the sums of all runs.
    pub(super) fn sum_into(self, envelope: &mut Envelope, time: Duration) {
        let runtime = &mut envelope.meta.runtime;
        runtime.usage = self.usage;
        runtime.attempts = (self.calls > 1).then_some(self.calls);
        runtime.processing_time_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }
}

/// The answers of the first run and of the samples.
pub(super) struct Answers {
    envelopes: Vec<Envelope>,
}

/// What the answer of a run decides; nothing if it violates its contract.
pub(super) struct Decided {
    /// The number of the run.
    pub(super) run: usize,
    pub(super) decision: Option<Decision>,
}

impl Answers {
    /// Adds what the runs cost to the sums.
    pub(super) fn new(first: Envelope, samples: Vec<Envelope>, costs: &mut Costs) -> Self {
        let envelopes: Vec<Envelope> = std::iter::once(first).chain(samples).collect();
        envelopes.iter().for_each(|envelope| costs.count(envelope));
        Self { envelopes }
    }

    pub(super) fn len(&self) -> usize {
        self.envelopes.len()
    }

    /// Returns what the answers decide. A run that failed for another reason than its answer says nothing about the answer, and is
    /// left out.
    pub(super) fn decisions(&self, of_data: impl Fn(&Value) -> Decision) -> Vec<Decided> {
        let mut decisions = Vec::new();
        for (run, envelope) in self.envelopes.iter().enumerate() {
            let decision = match &envelope.outcome {
                Outcome::Success { data, .. } => Some(of_data(data)),
                Outcome::Failure { error, .. } if error.origin == ErrorOrigin::Model => {
                    Some(Decision::of_error(&error.code))
                }
                Outcome::Failure { error, .. } if is_bad_answer(error) => None,
                Outcome::Failure { .. } => continue,
            };
            decisions.push(Decided { run, decision });
        }
        decisions
    }

    /// Returns why the first run failed that [`Self::decisions`] leaves out.
    pub(super) fn first_failure(&self) -> Option<&str> {
        let mut errors = self.envelopes.iter().filter_map(Envelope::error);
        let failed = errors.find(|error| error.origin != ErrorOrigin::Model && !is_bad_answer(error))?;
        Some(&failed.message)
    }

    /// Takes the answer of a run, once.
    pub(super) fn take(&mut self, run: usize) -> Envelope {
        let taken =
            || Envelope::failure(ErrorBody::new(Code::InternalError, "the answer of a run is missing"));
        self.envelopes.get_mut(run).map_or_else(taken, |envelope| std::mem::replace(envelope, taken()))
    }
}

/// Returns whether the model answered, and its answer is wrong in form, was cut, or was refused for its confidence.
pub(super) fn is_bad_answer(error: &ErrorBody) -> bool {
    match error.code {
        ErrorCode::Standard(Code::TokenLimit | Code::LowConfidence) => true,
        ErrorCode::Standard(code) => code.as_str().starts_with("E3"),
        _ => true,
    }
}
