use std::time::Duration;

use cog_json::{ToJson, Value};
use cog_spec::{
    Chunk, Dialect, ErrorBody, Fallback, Meta, ModelEvent, OnViolation, Repair, Risk, RuntimeMeta, Usage,
    Warning,
};

use crate::{
    AnswerRules, Correction, PendingReply, error,
    judge::{Failure, Success},
    outbox::Outbox,
    reply::Reply,
};

/// MediaSink a model's events the chunks of one stream (SPEC 3.2).
///
/// The order of the chunks is in the types: there is no assembler without its first chunk, and
/// [`Assembler::finish`] and [`Assembler::fail`], which give the last, consume it. Whoever holds one must end it
/// with one of the two, on every way out.
///
/// Time comes in as an argument: how long the run has taken so far.
#[must_use = "a stream has exactly one end: finish or fail"]
pub struct Assembler {
    pub(crate) rules: AnswerRules,
    reply: Reply,
    attempt: u32,
    /// Tokens of the attempts that are over.
    pub(crate) spent: Option<Usage>,
    pub(crate) model: Option<String>,
    /// What is to be said of the media that the model gets.
    media_warnings: Vec<Warning>,
    pub(crate) outbox: Outbox,
}

/// Whether the model is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More events are wanted.
    Continue,
    /// Nothing that may still come can help: the provider is to be stopped, and [`Assembler::finish`] called.
    Stop,
}

/// What [`Assembler::finish`] leaves.
#[must_use = "a model that is to be asked again must be"]
pub enum Finish {
    /// The last chunk was given.
    Ended,
    /// The answer breaks its contract, and the module asks for another attempt (ruling R49): the model is to
    /// be asked again, in the same session, and told what is wrong.
    Again(Box<Assembler>, Correction),
}

impl Assembler {
    /// The assembler of one run, and the first chunk (ruling R42). Of a stream that is resumed, a snapshot that
    /// takes back what was told is due at once: [`Assembler::tick`] gives it.
    pub fn new(rules: AnswerRules) -> (Self, Chunk) {
        let explain = format!("Running {}", rules.manifest.name);
        let meta = Box::new(Meta::new(None, Risk::Medium, explain));
        let first =
            Chunk::Meta { session_id: rules.session_id.clone(), meta, resume_from_seq: rules.resume_from };
        let model = rules.runtime.model.clone();
        let reply = Reply::new(&rules);
        let outbox = Outbox::new(&rules);
        (Self { rules, reply, attempt: 1, spent: None, model, media_warnings: Vec::new(), outbox }, first)
    }

    /// MediaCapabilities an event, and adds to `out` the chunks that it brings.
    pub fn event(&mut self, event: ModelEvent, now: Duration, out: &mut impl Extend<Chunk>) -> Step {
        match event {
            ModelEvent::Text(text) => self.reply.push(&self.rules, &text, now, &mut self.outbox),
            ModelEvent::Started { model: Some(model), .. } => {
                // The provider chooses this name, and may repeat the key in it.
                let model = self.rules.redact(&model);
                self.model = Some(match self.rules.provider.as_str() {
                    "" => model,
                    provider => format!("{provider}/{model}"),
                });
            }
            ModelEvent::Usage(usage) => self.reply.usage = Some(usage),
            ModelEvent::Finished(reason) => self.reply.finish = Some(reason),
            ModelEvent::Started { model: None, .. }
            | ModelEvent::Reasoning(_)
            | ModelEvent::ToolCall(_)
            | ModelEvent::Media(_) => {}
        }
        out.extend(self.outbox.drain());
        if self.reply.is_lost() { Step::Stop } else { Step::Continue }
    }

    /// Another provider is asked before anything was said, because `passed_over` gave no answer: from now on the
    /// answer is `provider`'s, whose model is asked in this dialect.
    pub fn turn_to(&mut self, provider: &str, model: &str, asked: Dialect, passed_over: Fallback) {
        self.rules.provider = provider.to_owned();
        self.rules.asked = asked;
        self.rules.runtime.fallbacks.push(passed_over);
        self.rules.runtime.model = Some(format!("{provider}/{model}"));
        self.model.clone_from(&self.rules.runtime.model);
        self.reply = Reply::new(&self.rules);
    }

    /// The model gets media, of which this is told; a provider that is asked after another may get them in another form.
    pub fn saw(&mut self, processed: Value, validation: Value, warnings: Vec<Warning>) {
        self.rules.runtime.media_processed = Some(processed);
        self.rules.runtime.media_validation = Some(validation);
        self.media_warnings = warnings;
    }

    /// Gives what was held back long enough (ruling R47).
    pub fn tick(&mut self, now: Duration, out: &mut impl Extend<Chunk>) {
        self.reply.settle(now, &mut self.outbox);
        out.extend(self.outbox.drain());
    }

    /// When [`Assembler::tick`] is due at the latest, though no event comes; none where nothing is held back.
    pub fn due(&self) -> Option<Duration> {
        self.reply.due()
    }

    /// The reply is over: checks it, and gives the last chunks.
    pub fn finish(self, now: Duration, out: &mut impl Extend<Chunk>) -> Finish {
        self.close(false).finish(now, out)
    }

    /// The reply is over: reads it to its end, so that what the model `made` beside its text can be put into it.
    pub fn close(mut self, made: bool) -> PendingReply {
        let mut reply = std::mem::replace(&mut self.reply, Reply::new(&self.rules));
        self.spent = self.usage(&reply);
        let said = std::mem::take(&mut reply.said);
        let ended = reply.finish(&self.rules, made, &mut self.outbox);
        PendingReply::new(self, said, ended)
    }

    /// The run ends here: the provider failed, a deadline passed, the caller is gone. Gives the last chunks, with
    /// what there is of the answer.
    pub fn fail(mut self, error: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let reply = std::mem::replace(&mut self.reply, Reply::new(&self.rules));
        let usage = self.usage(&reply);
        let failure = reply.fail(&self.rules, error, &mut self.outbox);
        self.give_up(failure.without(&self.rules.keys), usage, now);
        out.extend(self.outbox.drain());
    }

    /// Tokens of this attempt and those before.
    fn usage(&self, reply: &Reply) -> Option<Usage> {
        match (self.spent, reply.usage) {
            (Some(spent), Some(usage)) => Some(spent.plus(&usage)),
            (spent, usage) => spent.or(usage),
        }
    }

    /// Another attempt can help where the model broke its contract, and no one else is to blame.
    pub(crate) fn may_ask_again(&self, failure: &Failure) -> bool {
        self.rules.response.on_violation == OnViolation::Retry
            && self.attempt < self.rules.response.max_attempts
            && failure.is_of_contract()
    }

    /// Begins another attempt. Of the one that failed the violations are told that nobody told yet.
    pub(crate) fn restart(&mut self, error: &ErrorBody) {
        for violation in error::violations(error) {
            self.outbox.violation(violation);
        }
        self.attempt += 1;
        self.outbox.take_back();
    }

    pub(crate) fn succeed(&mut self, success: Success, usage: Option<Usage>, now: Duration) {
        let Success { mut meta, data, repairs, warnings, .. } = success;
        // The final chunk tells usage beside meta; the fold moves it there (ruling R40).
        meta.runtime = self.runtime(repairs, None, now);
        let warnings = self.all_warnings(warnings);
        self.outbox.push(Chunk::Final { meta: Box::new(meta), data, usage, warnings, emitted_context: None });
    }

    pub(crate) fn give_up(&mut self, failure: Failure, usage: Option<Usage>, now: Duration) {
        let Failure { error, meta, partial_data, repairs, warnings } = failure;
        let mut meta = meta.unwrap_or_else(|| Meta::of_failure(&error.message));
        meta.runtime = self.runtime(repairs, usage, now);
        self.outbox.snapshot("meta", Value::parse(&meta.to_json()).unwrap_or_default());
        let offer = self.rules.recovery.filter(|_| error::can_be_resumed(&error));
        let recovery = offer.map(|offer| self.outbox.recovery(offer));
        self.outbox.push(Chunk::Error {
            session_id: self.rules.session_id.clone(),
            error: Box::new(error),
            recovery,
            partial_data,
            warnings: self.all_warnings(warnings),
        });
    }

    /// Those of the run before the reply, then those of the reply.
    fn all_warnings(&self, of_reply: Vec<Warning>) -> Vec<Warning> {
        let redacted = |mut warning: Warning| {
            warning.message = self.rules.redact(&warning.message);
            warning
        };
        let of_run = self.rules.warnings.iter().chain(&self.media_warnings);
        of_run.cloned().chain(of_reply).map(redacted).collect()
    }

    fn runtime(&self, repairs: Vec<Repair>, usage: Option<Usage>, now: Duration) -> RuntimeMeta {
        let mut runtime = self.rules.runtime.clone();
        runtime.model.clone_from(&self.model);
        runtime.processing_time_ms = Some(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        runtime.attempts = (self.attempt > 1).then_some(self.attempt);
        (runtime.repairs, runtime.usage) = (repairs, usage);
        runtime
    }
}

#[cfg(test)]
mod tests;
