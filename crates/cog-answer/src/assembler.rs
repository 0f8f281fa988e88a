//! One run as a state machine: events of a model in, the chunks of one stream out.

mod judged;
mod pending;

use std::{sync::Arc, time::Duration};

use cog_json::{ToJson, Value};
use cog_spec::{
    Chunk, Cost, Dialect, ErrorBody, Fallback, Form, Meta, ModelEvent, PartReport, Repair, Risk, RuntimeMeta,
    Usage, Warning, WarningCode,
};

pub use self::{judged::JudgedReply, pending::PendingReply};
use crate::{
    AnswerRules, ConfidenceRules, Correction, error,
    finalize::{Failure, Success},
    reply::Reply,
    sequencer::ChunkSequencer,
};

/// Converts a model's events to the chunks of one stream (SPEC 3.2).
///
/// The types enforce the order of the chunks: an assembler is created with its first chunk, and
/// [`Assembler::finish`] and [`Assembler::fail`], which emit the last, consume it. The caller must end it with one of
/// the two on every path.
///
/// The elapsed time of the run is passed as an argument.
#[must_use = "a stream has exactly one end: finish or fail"]
pub struct Assembler {
    rules: AnswerRules,
    reply: Reply,
    attempt: u32,
    /// The attempts of the providers before this one, whose answers were bad.
    earlier_attempts: u32,
    /// The tokens of earlier attempts.
    spent: Option<Usage>,
    /// The replies that did not report all of their tokens.
    uncounted: u32,
    /// Whether the tokens of one of them are not even estimated, so that the cost of the run is unknown.
    is_cost_unknown: bool,
    model: Option<String>,
    /// Warnings about the media that the model receives.
    media_warnings: Vec<Warning>,
    /// The data of the parts of a composition.
    parts_data: Option<Value>,
    /// Why there is no further attempt, although the module allows one.
    last_attempt: Option<ErrorBody>,
    /// The failure of the attempt before this one.
    failed: Option<Box<Failure>>,
    sequencer: ChunkSequencer,
}

/// Whether to read more of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Pass the next event.
    Continue,
    /// No further event can change the result: stop the provider and call [`Assembler::finish`].
    Stop,
}

/// The result of [`Assembler::finish`].
#[must_use = "another attempt must be started"]
pub enum Finish {
    /// The last chunk was emitted.
    Ended,
    /// The answer violates its contract, and the module allows another attempt (ruling R49): call the model again in
    /// the same session, with the correction.
    Again(Box<Assembler>, Correction),
    /// The answer is bad, and another provider can be called: call it with the assembler, and pass the error to
    /// [`Assembler::fall_back_to`].
    Next(Box<Assembler>, ErrorBody),
}

impl Assembler {
    /// Returns the assembler of one run and the first chunk (ruling R42). A resumed stream starts with a snapshot that
    /// retracts the earlier data; [`Assembler::tick`] emits it.
    pub fn new(rules: AnswerRules) -> (Self, Chunk) {
        // A client shows something at once, long before the model states a confidence or a risk.
        let explain = format!("Running {}", rules.manifest.name);
        let meta = Box::new(Meta::new(None, Risk::Medium, explain));
        // Only this warning is of use before the end: a client that resumed must know at once that the numbers start
        // over.
        let warnings = rules.warnings.iter().filter(|warning| warning.code == WarningCode::SessionNew);
        let first = Chunk::Meta {
            session_id: rules.session_id.clone(),
            meta,
            resume_from_seq: rules.resume_from,
            warnings: warnings.cloned().collect(),
        };
        let model = rules.runtime.model.clone();
        let reply = Reply::new(&rules);
        let sequencer = ChunkSequencer::new(&rules);
        let assembler = Self {
            rules,
            reply,
            attempt: 1,
            earlier_attempts: 0,
            spent: None,
            uncounted: 0,
            is_cost_unknown: false,
            model,
            media_warnings: Vec::new(),
            parts_data: None,
            last_attempt: None,
            failed: None,
            sequencer,
        };
        (assembler, first)
    }

    /// Returns the model that answers, without its provider.
    pub fn model(&self) -> Option<&str> {
        let model = self.model.as_deref()?;
        let provider = self.rules.provider.as_str();
        Some(model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model))
    }

    /// Processes an event and adds the resulting chunks to `out`.
    pub fn event(&mut self, event: ModelEvent, now: Duration, out: &mut impl Extend<Chunk>) -> Step {
        match event {
            ModelEvent::Text(text) => self.reply.push(&self.rules, &text, now, &mut self.sequencer),
            ModelEvent::Started { model: Some(model), .. } => {
                // The provider chooses this name, and may repeat the key in it.
                let model = self.rules.redact(&model);
                self.model = Some(match self.rules.provider.as_str() {
                    "" => model,
                    provider => format!("{provider}/{model}"),
                });
            }
            ModelEvent::Tokens(tokens) => self.reply.tokens.push(tokens),
            ModelEvent::Usage(usage) => self.reply.usage = Some(usage),
            ModelEvent::Finished(reason) => self.reply.finish = Some(reason),
            // Reasoning is never a part of the answer, even if there is nothing else.
            ModelEvent::Reasoning(_) => self.reply.has_reasoning = true,
            // The caller handles tool calls and media.
            ModelEvent::Started { model: None, .. }
            | ModelEvent::ReasoningItem(_)
            | ModelEvent::ToolCall(_)
            | ModelEvent::Media(_) => {}
        }
        out.extend(self.sequencer.drain());
        // Generated tokens cost money, so a reply that cannot become valid is not read to its end.
        if self.reply.is_invalid(&self.rules) { Step::Stop } else { Step::Continue }
    }

    /// Switches to another provider because the one in `failed` did not answer. [`Assembler::set_request`] follows, with what the
    /// new one is asked.
    pub fn fall_back_to(&mut self, provider: &str, model: &str, failed: Fallback) {
        self.rules.provider = provider.to_owned();
        self.rules.runtime.fallbacks.push(failed);
        self.rules.runtime.model = Some(format!("{provider}/{model}"));
        self.model.clone_from(&self.rules.runtime.model);
    }

    /// Sets what `meta` reports about the media that the model receives. A fallback provider may receive another form.
    pub fn set_media(&mut self, processed: Value, validation: Value) {
        self.rules.runtime.media_processed = Some(processed);
        self.rules.runtime.media_validation = Some(validation);
    }

    /// Sets the warnings about what the model receives in addition to the input.
    pub fn set_media_warnings(&mut self, warnings: Vec<Warning>) {
        self.media_warnings = warnings;
    }

    /// Sets the dialect of the schema and the form of the next request. The parser depends on both, and nothing of a failed reply
    /// may mix with the next one.
    pub fn set_request(&mut self, dialect: Dialect, form: &'static Form) {
        self.rules.dialect = dialect;
        self.rules.form = form;
        self.reply = Reply::new(&self.rules);
    }

    /// Sets how the confidence of the model that answers next is measured.
    pub fn set_confidence(&mut self, confidence: Option<Arc<ConfidenceRules>>) {
        self.rules.confidence = confidence;
    }

    /// Sets whether another provider can be called after this one.
    pub fn set_next(&mut self, has_next: bool) {
        self.rules.has_next = has_next;
    }

    /// Adds warnings of the run.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        self.rules.warnings.extend(warnings);
    }

    /// Emits buffered text that is due (ruling R47).
    pub fn tick(&mut self, now: Duration, out: &mut impl Extend<Chunk>) {
        self.reply.flush_due(now, &mut self.sequencer);
        out.extend(self.sequencer.drain());
    }

    /// Returns when to call [`Assembler::tick`] if no event arrives before; none if nothing is buffered.
    pub fn due(&self) -> Option<Duration> {
        self.reply.due()
    }

    /// Sets the cost of this attempt, which the caller knows for the model and the tokens of the reply.
    pub fn set_cost(&mut self, cost: impl FnOnce(&str, &Usage) -> Option<Cost>) {
        let Some(usage) = &self.reply.usage else { return };
        let cost = self.model().and_then(|model| cost(model, usage));
        self.reply.usage = Some(Usage { cost, ..usage.clone() });
    }

    /// Returns the tokens of the current reply, as they count for the run; none if none are known.
    pub fn reply_usage(&self) -> Option<Usage> {
        let usage = self.reply.usage.clone()?;
        Some(if self.reply.has_unknown_tokens() { Usage { cost: None, ..usage } } else { usage })
    }

    /// Returns whether the current reply has begun without complete token counts, which come with its end.
    pub fn is_uncounted(&self) -> bool {
        self.reply.is_uncounted()
    }

    /// Ends a reply that requests tool calls. Its data are retracted; the next reply belongs to the same attempt.
    pub fn end_round(&mut self, out: &mut impl Extend<Chunk>) {
        let reply = std::mem::replace(&mut self.reply, Reply::new(&self.rules));
        self.count(&reply);
        // What came before a tool call is not the answer, but a client has already shown it.
        if self.sequencer.has_data() {
            self.sequencer.retract();
        }
        out.extend(self.sequencer.drain());
    }

    /// Returns the tokens of the replies that have ended; none if none are known.
    pub fn usage(&self) -> Option<&Usage> {
        self.spent.as_ref()
    }

    /// Returns the tokens of all replies, with the current one; none if none are known.
    pub fn usage_with_reply(&self) -> Option<Usage> {
        self.counted(&self.reply).0
    }

    /// Counts the current call, whose reply did not arrive, or only in part. `estimate` is an estimate of its tokens: the
    /// provider may charge for them. It does not replace complete counts.
    pub fn lose_reply(&mut self, estimate: Usage) {
        self.reply.is_lost = true;
        if self.reply.is_uncounted() {
            let known = self.reply.usage.take().unwrap_or_default();
            self.reply.usage = Some(Usage {
                input_tokens: known.input_tokens.max(estimate.input_tokens),
                output_tokens: known.output_tokens.max(estimate.output_tokens),
                ..known
            });
            self.reply.is_estimated = true;
        }
    }

    /// Counts a call whose reply is not read: another provider was called, or it explains the answer.
    pub fn add_lost_call(&mut self, estimate: &Usage) {
        self.is_cost_unknown |= estimate.cost.is_none();
        self.add_usage(&Usage { uncounted_calls: Some(1), ..estimate.clone() });
    }

    /// Returns whether the current reply has not reached its end.
    pub fn is_unfinished(&self) -> bool {
        self.reply.finish.is_none()
    }

    /// Returns whether the tokens of the current reply are estimated.
    pub fn is_estimated(&self) -> bool {
        self.reply.is_estimated
    }

    /// Adds tokens that were spent outside the replies: by a tool, or before the run was halted.
    pub fn add_usage(&mut self, usage: &Usage) {
        self.uncounted += usage.uncounted_calls.unwrap_or(0);
        self.spent = Some(self.spent.take().map_or_else(|| usage.clone(), |spent| spent.plus(usage)));
    }

    /// Checks the complete reply and emits the last chunks.
    pub fn finish(self, now: Duration, out: &mut impl Extend<Chunk>) -> Finish {
        self.close(false).finish(now, out)
    }

    /// Parses the rest of the reply, so that generated media can be inserted. `has_media` is whether there are any.
    pub fn close(mut self, has_media: bool) -> PendingReply {
        let mut reply = std::mem::replace(&mut self.reply, Reply::new(&self.rules));
        self.count(&reply);
        let attempt_text = std::mem::take(&mut reply.attempt_text);
        let ended = reply.finish(&self.rules, has_media, &mut self.sequencer);
        PendingReply::new(self, attempt_text, ended)
    }

    /// Ends the run with an error: the provider failed, a deadline passed, or the run was cancelled. Emits the last
    /// chunks, with the partial answer.
    pub fn fail(mut self, error: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let reply = std::mem::replace(&mut self.reply, Reply::new(&self.rules));
        self.count(&reply);
        // This provider was asked because of an answer of another one, which is all that there is.
        let is_first_attempt = self.earlier_attempts + 1 == self.attempt;
        if is_first_attempt && self.failed.is_some() && !self.sequencer.has_data() {
            return self.refuse(error, now, out);
        }
        let usage = self.spent.take();
        let failure = reply.fail(&self.rules, error, &mut self.sequencer);
        self.emit_failure(failure.without(&self.rules.keys), usage, now);
        out.extend(self.sequencer.drain());
    }

    /// Ends the run because its next call is refused. After an attempt that failed, the error also reports why that one
    /// failed, with what was valid in its answer.
    pub fn refuse(mut self, refusal: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let Some(failed) = self.failed.take() else { return self.fail(refusal, now, out) };
        self.attempt -= 1; // this one is not made
        let error = error::refused_after(refusal, &failed.error);
        let usage = self.spent.take();
        self.emit_failure(Failure { error, ..*failed }, usage, now);
        out.extend(self.sequencer.drain());
    }

    /// Adds the tokens of this attempt to the tokens of the earlier ones.
    fn count(&mut self, reply: &Reply) {
        let (spent, uncounted) = self.counted(reply);
        self.spent = spent;
        self.uncounted = uncounted;
        self.is_cost_unknown |= !self.rules.is_from_parts && reply.has_unknown_tokens();
    }

    /// Returns the tokens of all replies up to this one, and the number of replies without tokens.
    fn counted(&self, reply: &Reply) -> (Option<Usage>, u32) {
        if self.rules.is_from_parts {
            return (self.spent.clone(), self.uncounted); // no model was called
        }
        let uncounted = self.uncounted + u32::from(reply.is_uncounted());
        let mut spent = match (&self.spent, &reply.usage) {
            (Some(spent), Some(usage)) => Some(spent.plus(usage)),
            (spent, usage) => spent.clone().or_else(|| usage.clone()),
        };
        if let Some(spent) = spent.as_mut().filter(|_| uncounted > 0) {
            spent.uncounted_calls = Some(uncounted);
            // A sum with an unknown summand is no price: the cost is missing instead of too low.
            if self.is_cost_unknown || reply.has_unknown_tokens() {
                spent.cost = None;
            }
        }
        (spent, uncounted)
    }

    /// Returns whether another attempt is allowed and can help, because the model violated its contract.
    fn may_retry(&self, failure: &Failure) -> bool {
        self.last_attempt.is_none() && self.allows_retry(failure)
    }

    fn allows_retry(&self, failure: &Failure) -> bool {
        self.attempt - self.earlier_attempts < self.rules.attempts() && failure.is_contract_violation()
    }

    /// Returns whether another provider is called because of this answer.
    fn may_escalate(&self, failure: &Failure) -> bool {
        if !self.rules.has_next || self.last_attempt.is_some() || failure.meta.is_some() {
            return false; // an error that the model reports is an answer
        }
        let violates = self.rules.escalates && failure.is_contract_violation();
        violates || self.rules.asks_next_after(&failure.error)
    }

    /// Makes this attempt the last one. If its answer fails and the module allows another attempt, the run ends with
    /// this error, which then reports why the answer failed.
    pub fn end_attempts(&mut self, refusal: ErrorBody) {
        self.last_attempt = Some(refusal);
    }

    /// Reports the violations of an answer that were not reported while it arrived (ruling R49).
    fn report(&mut self, failure: &Failure) {
        if failure.is_contract_violation() {
            for violation in error::violations(&failure.error) {
                self.sequencer.violation(violation);
            }
        }
    }

    /// Starts another attempt after this one.
    fn restart(&mut self, failed: Failure) {
        self.attempt += 1;
        // Reported if the next call is refused: the user then learns why a further call was needed.
        self.failed = Some(Box::new(failed));
        self.sequencer.retract();
    }

    /// Starts the attempts of another provider after an answer of this one.
    fn escalate(&mut self, failed: Failure) {
        self.earlier_attempts = self.attempt;
        self.attempt += 1;
        self.failed = Some(Box::new(failed));
        if self.sequencer.has_data() {
            self.sequencer.retract();
        }
    }

    /// Returns the usage of a part of a composition of whose calls no tokens are known; none if it called no model. The
    /// sum of the composition counts its calls.
    fn uncounted_usage(&self) -> Option<Usage> {
        // The offline provider ends its replies without tokens, but there is no call whose price is unknown.
        let is_offline = self.rules.warnings.iter().any(|it| it.code == WarningCode::NoModelCalled);
        let uncounted = Some(self.uncounted).filter(|count| *count > 0 && self.rules.is_part && !is_offline);
        uncounted.map(|count| Usage { uncounted_calls: Some(count), ..Usage::default() })
    }

    fn emit_success(&mut self, success: Success, usage: Option<Usage>, now: Duration) {
        let Success {
            mut meta,
            evidence,
            measured,
            data,
            emitted: emitted_context,
            repairs,
            warnings,
            handoff,
            ..
        } = success;
        // The final chunk has usage next to meta; the fold moves it there (ruling R40).
        let usage = usage.or_else(|| self.uncounted_usage());
        meta.runtime = self.runtime(repairs, None, now);
        meta.runtime.evidence = evidence;
        meta.runtime.confidence_source = measured.map(|measured| measured.source);
        meta.runtime.gate = measured.and_then(|measured| measured.gate);
        let warnings = self.all_warnings(warnings);
        self.sequencer.push(Chunk::Final {
            meta: Box::new(meta),
            data,
            usage,
            warnings,
            emitted_context,
            handoff,
        });
    }

    fn emit_failure(&mut self, failure: Failure, usage: Option<Usage>, now: Duration) {
        let is_resumable = error::can_be_resumed(&failure.error);
        self.emit_error(failure, usage, is_resumable, now);
    }

    fn emit_error(&mut self, failure: Failure, usage: Option<Usage>, is_resumable: bool, now: Duration) {
        let may_retry = self.allows_retry(&failure);
        // A failure with a meta is the model's own answer, which is not completed with data of parts.
        let is_own = failure.meta.is_none();
        let Failure { error, meta, partial_data, repairs, warnings } = failure;
        let error = match self.last_attempt.take().filter(|_| may_retry) {
            Some(refusal) => error::refused_after(refusal, &error),
            None => error,
        };
        let partial_data = partial_data.or_else(|| self.parts_data.take().filter(|_| is_own));
        let usage = usage.or_else(|| self.uncounted_usage());
        let mut meta = meta.unwrap_or_else(|| Meta::for_failure(&error.message));
        meta.runtime = self.runtime(repairs, usage, now);
        // An error chunk has no meta, so the final one is sent before it; the fold takes the last one.
        self.sequencer.snapshot("meta", Value::parse(&meta.to_json()).unwrap_or_default());
        let offer = self.rules.recovery.filter(|_| is_resumable);
        let recovery = offer.map(|offer| self.sequencer.recovery(offer));
        self.sequencer.push(Chunk::Error {
            session_id: self.rules.session_id.clone(),
            error: Box::new(error),
            recovery,
            partial_data,
            warnings: self.all_warnings(warnings),
        });
    }

    /// Returns the warnings of the run, then the warnings of the reply.
    fn all_warnings(&self, reply_warnings: Vec<Warning>) -> Vec<Warning> {
        let run_warnings = self.rules.warnings.iter().chain(&self.media_warnings);
        let mut all: Vec<Warning> = run_warnings.cloned().chain(reply_warnings).collect();
        for warning in &mut all {
            warning.message = self.rules.redact(&warning.message);
        }
        all
    }

    fn runtime(&self, repairs: Vec<Repair>, usage: Option<Usage>, now: Duration) -> RuntimeMeta {
        let mut runtime = self.rules.runtime.clone();
        runtime.model.clone_from(&self.model);
        runtime.processing_time_ms = Some(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        runtime.attempts = (self.attempt > 1).then_some(self.attempt);
        runtime.repairs = repairs;
        runtime.usage = usage;
        runtime.calibration = self.rules.confidence.as_ref().and_then(|confidence| confidence.report());
        runtime
    }
}

// The answer of a composed module: what its parts report, and the answer that they give.

/// What the parts of a composition report about themselves.
#[derive(Debug, Clone, Default)]
pub struct PartsSummary {
    /// The reports, in the order in which the parts started.
    pub reports: Vec<PartReport>,
    /// The tokens and the cost of all parts; none if none are known.
    pub usage: Option<Usage>,
    /// The greatest risk of the parts that are done.
    pub risk: Option<Risk>,
    /// The warnings of the parts.
    pub warnings: Vec<Warning>,
}

impl Assembler {
    /// Returns whether a caller reads the chunks as they arrive.
    pub fn is_streamed(&self) -> bool {
        self.rules.is_streamed
    }

    /// Adds what the parts report, and their data, which are the partial data of a failure that has none of its own.
    /// The parts ran before the module's own reply.
    pub fn add_parts(&mut self, parts: PartsSummary, data: Option<Value>) {
        self.parts_data = data.filter(|_| self.rules.manifest.failure.partial_allowed);
        if let Some(usage) = &parts.usage {
            self.add_usage(usage);
        }
        self.rules.runtime.parts = parts.reports;
        self.rules.parts_risk = parts.risk;
        self.warn(parts.warnings);
    }

    /// Reads the next reply as the answer that the parts give: no model is called for it. `provider` and `model` are
    /// its names in `meta.model`.
    pub fn answer_from_parts(&mut self, provider: &str, model: &str) {
        self.rules.provider = provider.to_owned();
        self.rules.runtime.model = Some(format!("{provider}/{model}"));
        self.model.clone_from(&self.rules.runtime.model);
        (self.rules.dialect, self.rules.is_from_parts) = (Dialect::Prompt, true);
        self.reply = Reply::new(&self.rules);
    }

    /// Ends the run because a part failed. `is_interrupted` is whether the stream can be resumed, because a part may
    /// succeed later.
    pub fn fail_parts(
        mut self,
        error: ErrorBody,
        is_interrupted: bool,
        now: Duration,
        out: &mut impl Extend<Chunk>,
    ) {
        let is_resumable = is_interrupted || error::can_be_resumed(&error);
        let usage = self.spent.take();
        self.emit_error(Failure::new(error).without(&self.rules.keys), usage, is_resumable, now);
        out.extend(self.sequencer.drain());
    }
}

#[cfg(test)]
mod tests;
