//! A reply that was judged: what the checks of the program add, and its last chunks.

use std::time::Duration;

use cog_json::{Path, Value};
use cog_schema::Violation;
use cog_spec::{Chunk, Code, ErrorBody, Warning};

use super::{Assembler, Finish};
use crate::{
    DeferredJudgement,
    correction::{AttemptText, Correction},
    error,
    finalize::{self, Failure, Success},
    listener::Listener,
};

/// A complete reply that was judged, once. The checks of the program can still reject a valid answer.
#[must_use = "a stream has exactly one end: finish or fail"]
pub struct JudgedReply {
    pub(super) assembler: Assembler,
    pub(super) attempt_text: AttemptText,
    pub(super) judged: Result<Success, Box<Failure>>,
    /// What is left to emit; none if the reply could not be read.
    pub(super) rest: Option<RestOfData>,
    pub(super) warnings: Vec<Warning>,
}

/// What is left to emit of the data of a reply.
pub(super) struct RestOfData {
    pub(super) listener: Listener,
    /// All events of the data were processed as data.
    pub(super) is_complete: bool,
    /// Paths of the data at which media were inserted.
    pub(super) placed: Vec<Path>,
}

impl JudgedReply {
    /// Returns the data of a valid answer, as they will be emitted; none of any other reply.
    pub fn accepted(&self) -> Option<&Value> {
        self.judged.as_ref().ok().map(|success| &success.data)
    }

    /// Rejects a valid answer for what the checks of the program found: paths with what is wrong. It is requested again like an
    /// answer that fails a named check, and the run fails with E3006 after the last attempt.
    pub fn reject(mut self, found: impl IntoIterator<Item = (String, String)>) -> Self {
        let violations = found.into_iter().map(|(path, message)| {
            let violation = error::violation(&path, "check", message);
            Violation { code: Code::ConstraintViolation, ..violation }
        });
        let violations: Vec<Violation> = violations.collect();
        if !violations.is_empty() {
            let rules = &self.assembler.rules;
            self.judged =
                self.judged.and_then(|success| Err(finalize::rejected(rules, success, &violations)));
        }
        self
    }

    /// Returns what is left to judge once all evidence about the answer is known; none unless the rules defer it and the answer is
    /// valid.
    pub fn deferred(&self) -> Option<DeferredJudgement> {
        let rules = &self.assembler.rules;
        let success = self.judged.as_ref().ok().filter(|_| rules.defers_confidence)?;
        Some(DeferredJudgement::new(rules.clone(), success.model_meta.clone()))
    }

    /// Emits the last chunks.
    pub fn finish(self, now: Duration, out: &mut impl Extend<Chunk>) -> Finish {
        let Self { mut assembler, attempt_text, judged, rest, mut warnings } = self;
        let usage = assembler.spent.clone();
        if let Some(rest) = rest {
            assembler.emit_rest(rest, &judged);
        }
        match judged.map_err(|failure| failure.without(&assembler.rules.keys)) {
            Ok(success) => {
                warnings.extend(success.warnings);
                assembler.emit_success(Success { warnings, ..success }, usage, now);
            }
            Err(failure) if assembler.may_retry(&failure) => {
                assembler.report(&failure);
                let correction = Correction::new(attempt_text, &failure.error);
                assembler.restart(failure);
                out.extend(assembler.sequencer.drain());
                return Finish::Again(Box::new(assembler), correction);
            }
            Err(failure) if assembler.may_escalate(&failure) => {
                assembler.report(&failure);
                let error = failure.error.clone();
                assembler.escalate(failure);
                out.extend(assembler.sequencer.drain());
                return Finish::Next(Box::new(assembler), error);
            }
            Err(failure) => {
                warnings.extend(failure.warnings.clone());
                assembler.report(&failure);
                assembler.emit_failure(Failure { warnings, ..failure }, usage, now);
            }
        }
        out.extend(assembler.sequencer.drain());
        Finish::Ended
    }

    /// Ends the run with an error of the runtime.
    pub fn fail(self, error: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let Self { assembler, judged, warnings, .. } = self;
        let partial_data = match judged {
            Ok(success) => finalize::partial_of_valid(&assembler.rules, &success.data),
            Err(failure) => failure.partial_data,
        };
        fail(assembler, Failure { partial_data, warnings, ..Failure::new(error) }, now, out);
    }
}

/// Ends a run with a failure that is not one of its answer.
pub(super) fn fail(mut assembler: Assembler, failure: Failure, now: Duration, out: &mut impl Extend<Chunk>) {
    let usage = assembler.spent.clone();
    assembler.emit_failure(failure.without(&assembler.rules.keys), usage, now);
    out.extend(assembler.sequencer.drain());
}

impl Assembler {
    /// Emits the rest of the data of a reply, unless another attempt follows.
    fn emit_rest(&mut self, rest: RestOfData, judged: &Result<Success, Box<Failure>>) {
        let RestOfData { listener, is_complete, placed } = rest;
        match judged {
            Ok(success) => {
                let changed: Vec<_> = success.changed.iter().chain(&placed).cloned().collect();
                listener.finish(&success.data, &changed, is_complete, &mut self.sequencer);
            }
            Err(failure) if self.may_retry(failure) || self.may_escalate(failure) => {}
            Err(failure) => {
                let partial = failure.partial_data.as_ref();
                listener.fail(None, partial, &placed, is_complete, &mut self.sequencer);
            }
        }
    }
}
