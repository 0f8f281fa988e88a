//! The asynchronous part of a run: calls the model and passes its events to the assembler.

mod explain;
mod reply;
mod tools;

use std::{pin::pin, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, Assembler, Finish, Step};
use cog_harmony::{Message, Reasoning};
use cog_json::Value;
use cog_media::{media_processed, media_validation};
use cog_provider::{ModelStream, ProviderError};
use cog_spec::{Chunk, Code, ErrorBody, ErrorCode, Fallback, ModelEvent, ModelMedia, Progress, Usage};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};

use self::reply::{Arrived, Called, Reply, is_lost};
use crate::{
    budget::{self, OpenCall},
    clock,
    composition::Execution,
    events,
    media::{self, CitedMedia, Collected, GeneratedMedia, Opened, Opening},
    plan::Plan,
    provider, request, request_size,
    stream::ChunkQueue,
    tools::Round,
};

/// The maximum bytes of text that are processed at once.
const MAX_TEXT: usize = 8 * 1024;

/// A run in progress.
pub(crate) struct Driver {
    run: Plan,
    /// The number of messages in the request, without those that correct a failed answer.
    initial_messages: usize,
    /// Whether the request was compared with the context window of the model.
    is_sized: bool,
    /// The media for a fallback provider, and for the input of a halted run.
    media: Option<Collected>,
    /// The media of the input, which citations may name.
    cited: Option<Arc<CitedMedia>>,
    state: State,
    /// The generated media of the reply so far.
    generated: Vec<GeneratedMedia>,
    /// The items of the reasoning in the reply so far.
    reasoning: Vec<Value>,
    /// The current call in the budgets of the run.
    counted: Option<OpenCall>,
    /// The bytes of its reply so far.
    output_bytes: u64,
    /// The current call, if there are listeners.
    call: Option<Box<events::OpenCall>>,
    /// What the run holds while its own prompt runs after the parts.
    permit: Option<OwnedSemaphorePermit>,
    /// The queue for the chunks.
    out: ChunkQueue,
    started: Instant,
}

enum State {
    /// Opens and checks the media of the input.
    Collecting(Box<Assembler>, Opening),
    /// Takes the right to continue a halted run, once its media are open.
    Claiming(Box<Assembler>, Option<Collected>),
    /// Prepares the media for the provider.
    Preparing(Box<Assembler>, Collected),
    /// Runs the parts of a composed module.
    Composing(Box<Assembler>, Box<Execution>),
    /// Calls the provider.
    Calling(Box<Assembler>),
    /// Executes the tool calls of the reply.
    CallingTools(Box<Assembler>, Box<Round>),
    /// Reads the reply.
    Reading(Box<Assembler>, ModelStream),
    /// The last chunk is in the queue.
    Ended,
}

impl Driver {
    pub(crate) fn new(mut run: Plan, rules: AnswerRules, mut out: ChunkQueue) -> Self {
        let (mut assembler, first) = Assembler::new(rules);
        out.push(first);
        assembler.tick(Duration::ZERO, &mut out);
        let initial_messages = run.request.messages.messages().len();
        let assembler = Box::new(assembler);
        // Without fallbacks, a request without media was compared with the window already.
        let is_sized = run.media.is_none() && run.others.is_empty();
        let state = match run.media.take() {
            Some(sources) => {
                out.push(progress("media_fetch", 0));
                State::Collecting(assembler, sources.open())
            }
            None if run.claim.is_some() => State::Claiming(assembler, None),
            None => State::ready(assembler, &mut run, &out),
        };
        let started = Instant::now();
        Self {
            run,
            initial_messages,
            is_sized,
            media: None,
            cited: None,
            state,
            generated: Vec::new(),
            reasoning: Vec::new(),
            counted: None,
            output_bytes: 0,
            call: None,
            permit: None,
            out,
            started,
        }
    }

    /// Runs to the last chunk. Rare steps are boxed, so that the future of a waiting run is small.
    pub(crate) async fn run(mut self) {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Collecting(assembler, opening) => Box::pin(self.collect(assembler, opening)).await,
                State::Claiming(assembler, media) => Box::pin(self.claim(assembler, media)).await,
                State::Preparing(assembler, media) => Box::pin(self.prepare(assembler, media)).await,
                State::Composing(assembler, parts) => Box::pin(self.compose(assembler, *parts)).await,
                State::Calling(assembler) => self.call(assembler).await,
                State::CallingTools(assembler, round) => Box::pin(self.call_tools(assembler, *round)).await,
                State::Reading(assembler, reply) => self.read(assembler, reply).await,
                State::Ended => return,
            };
        }
    }

    async fn collect(&mut self, assembler: Box<Assembler>, mut opening: Opening) -> State {
        let done = match self.within_deadline(async { Ok(opening.next().await) }).await {
            Ok(Opened::Some(percent)) => {
                // Opening the media counts as 5 percent of a run.
                self.out.push(progress("media_fetch", percent / 20));
                return State::Collecting(assembler, opening);
            }
            Ok(Opened::All(done)) => *done,
            Err(error) => Err(error),
        };
        match done {
            Ok(media) => State::Claiming(assembler, Some(media)),
            Err(error) => self.fail(assembler, error),
        }
    }

    /// Claims the halted run that this one continues. Its media are stored with the log of the run by now, so that a run that
    /// is killed has them when it starts again.
    async fn claim(&mut self, assembler: Box<Assembler>, media: Option<Collected>) -> State {
        if let Some(claim) = self.run.claim.take()
            && let Err(error) = claim.take().await
        {
            return self.fail(assembler, error);
        }
        match media {
            Some(media) => {
                self.out.push(progress("media_convert", 5));
                State::Preparing(assembler, media)
            }
            None => State::ready(assembler, &mut self.run, &self.out),
        }
    }

    async fn prepare(&mut self, mut assembler: Box<Assembler>, media: Collected) -> State {
        let provider = Arc::clone(&self.run.provider);
        let model = self.run.request.model.clone();
        let prepared = match self.within_deadline(media.prepare(provider.as_ref(), &model)).await {
            Ok(all) => self.run.add_media(&media, all).await,
            Err(error) => Err(error),
        };
        let prepared = prepared.map(|all| (media::warnings(&all, media.texts()), all));
        let cited = self.cited.get_or_insert_with(|| Arc::new(media.cited()));
        if let Some(slot) = &self.run.media_slot {
            let _ = slot.set(Arc::clone(cited)); // a fallback provider has the same media
        }
        let may_halt = self.run.tools.is_some() || self.run.parts.is_some();
        let is_needed = may_halt || !self.run.others.is_empty();
        self.media = is_needed.then_some(media);
        match prepared {
            Ok((warnings, all)) => {
                if !all.is_empty() {
                    assembler.set_media(media_processed(&all), media_validation(&all));
                }
                assembler.set_media_warnings(warnings);
                State::ready(assembler, &mut self.run, &self.out)
            }
            Err(error) => match fallback_code(&error) {
                Some(code) => self.fall_back(assembler, code, error),
                None => self.fail(assembler, error),
            },
        }
    }

    /// Waits for work that may fail, until the run is cancelled or times out.
    async fn within_deadline<T>(
        &mut self,
        work: impl Future<Output = Result<T, ErrorBody>>,
    ) -> Result<T, ErrorBody> {
        tokio::select! {
            // A cancelled run ends as cancelled, also when its work is done at the same moment.
            biased;
            reason = self.run.cancellation.wait() => Err(reason.error()),
            done = timeout_at(self.deadline(), work) => done.unwrap_or_else(|_| Err(self.timeout_error())),
        }
    }

    async fn call(&mut self, assembler: Box<Assembler>) -> State {
        // Before the budgets: a request that no window holds must not be counted in them.
        if let Err(error) = self.check_size() {
            return self.fall_back(assembler, Code::InputTooLarge, error); // another window may be larger
        }
        if let Err(error) = self.admit() {
            return self.refuse(assembler, error);
        }
        // Only the reply that gives the answer may be stored, not one before a correction.
        if let Some(cache) = &mut self.run.cache {
            cache.restart();
        }
        match self.open().await {
            Called::Reply(reply) => State::Reading(assembler, reply),
            Called::Failed(error) => self.handle_error(assembler, &error),
            Called::Lost(error) => self.lose_reply(assembler, error),
        }
    }

    /// Compares the request with the context window of the model, which media and the results of tools may exceed.
    fn check_size(&mut self) -> Result<(), ErrorBody> {
        match std::mem::replace(&mut self.is_sized, true) {
            true => Ok(()),
            false => request_size::window(self.run.provider.as_ref(), &self.run.request),
        }
    }

    /// Handles a call that returned no reply.
    fn handle_error(&mut self, mut assembler: Box<Assembler>, error: &ProviderError) -> State {
        self.call.iter_mut().for_each(|call| call.fail(error));
        let is_lost = is_lost(error);
        if is_lost && self.run.others.is_empty() {
            return self.lose_reply(assembler, self.error_of(error)); // the model may have worked
        }
        let refused = match is_lost && provider::calls_model(self.run.provider.as_ref()) {
            true => {
                assembler.add_lost_call(&self.estimate());
                self.counted.take().and_then(OpenCall::lose)
            }
            false => self.refund(),
        };
        if let Some(spent) = refused {
            return self.refuse(assembler, spent);
        }
        self.run.cache = None; // the key has another request than the one that will be answered
        self.call = None; // it ends here; the next call has its own
        if let Some(warning) = self.run.reduce(error) {
            self.run.request.timeout = Some(self.remaining());
            self.tell_request(&mut assembler);
            assembler.warn([warning]);
            return State::Calling(assembler);
        }
        if error.allows_fallback() {
            tracing::warn!(error = error.outline(), "the call failed");
            return self.fall_back(assembler, error.code(), self.error_of(error));
        }
        self.fail(assembler, self.error_of(error))
    }

    /// Calls the next provider, when there is one. The media are prepared again for it.
    fn fall_back(&mut self, mut assembler: Box<Assembler>, code: Code, error: ErrorBody) -> State {
        self.run.cache = None; // its key names the first provider
        let Some(next) = self.run.others.pop_front() else { return self.fail(assembler, error) };
        let failed = Fallback {
            provider: self.run.provider.info().name.clone().into_owned(),
            code,
            message: error.message,
        };
        tracing::warn!(
            provider = failed.provider,
            code = code.as_str(),
            next = %next.info().name,
            "calling the next provider"
        );
        let remaining = self.remaining();
        self.run.request = self.run.spec.next_request(next.as_ref(), &mut self.run.request, remaining);
        // A request that the provider does not support is an error of the call.
        let omitted = self.run.spec.fit(next.as_ref(), &mut self.run.request).unwrap_or_default();
        self.run.provider = next;
        self.is_sized = false;
        let provider = self.run.provider.as_ref();
        let model = request::model_of(&self.run.request, provider);
        assembler.fall_back_to(&provider.info().name, model, failed);
        self.tell_request(&mut assembler);
        assembler.warn(omitted);
        let priced =
            self.run.tools.as_ref().map(|tools| tools.check_price(provider, &self.run.request.model));
        if let Some(Err(error)) = priced {
            return self.fall_back(assembler, Code::ProviderUnavailable, error);
        }
        match self.media.take() {
            Some(media) => State::Preparing(assembler, media),
            None => State::Calling(assembler),
        }
    }

    /// Tells the assembler how the model is asked.
    fn tell_request(&self, assembler: &mut Assembler) {
        let dialect = request::dialect_of(&self.run.request, self.run.provider.as_ref());
        assembler.set_request(dialect, request::form_of(&self.run.request));
        if let Some(required) = &self.run.confidence {
            let provider = self.run.provider.as_ref();
            let rules = required.rules(&self.run.spec.module, provider, &self.run.request);
            assembler.set_confidence(Some(rules));
        }
    }

    /// Reads the complete reply.
    async fn read(&mut self, mut assembler: Box<Assembler>, reply: ModelStream) -> State {
        let cancellation = self.run.cancellation.clone();
        let mut cancelled = pin!(cancellation.wait());
        let mut reply = Reply::new(reply, self.deadline());
        loop {
            let due = assembler.due().map(|due| self.instant_at(due));
            let arrived = self.next(&mut reply, due, cancelled.as_mut()).await;
            let step = match arrived {
                Arrived::Event(ModelEvent::Media(media)) => match Box::pin(self.check(media)).await {
                    Ok(()) => Step::Continue,
                    Err(error) => return self.fail(assembler, error),
                },
                Arrived::Event(ModelEvent::ReasoningItem(item)) => {
                    self.reasoning.push(item);
                    Step::Continue
                }
                Arrived::Event(ModelEvent::Text(text)) if text.len() > MAX_TEXT => {
                    Box::pin(self.read_parts(&mut assembler, &text)).await
                }
                Arrived::Event(event) => assembler.event(event, self.started.elapsed(), &mut self.out),
                Arrived::Due => {
                    assembler.tick(self.started.elapsed(), &mut self.out);
                    Step::Continue
                }
                Arrived::Complete => Step::Stop,
                Arrived::Lost(error) => return self.lose_reply(assembler, error),
            };
            if step == Step::Stop {
                drop(reply); // closes the connection before tools run, which may take minutes
                return Box::pin(self.finish(assembler)).await;
            }
            self.out.make_room().await;
        }
    }

    /// Processes long text in parts. The reader takes the chunks of one part before the next part creates its chunks.
    async fn read_parts(&mut self, assembler: &mut Assembler, text: &str) -> Step {
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
            let event = ModelEvent::Text(part.to_owned());
            if assembler.event(event, self.started.elapsed(), &mut self.out) == Step::Stop {
                return Step::Stop;
            }
            self.out.make_room().await;
            rest = after;
        }
        Step::Continue
    }

    /// Checks a media item that the model generated.
    async fn check(&mut self, media: ModelMedia) -> Result<(), ErrorBody> {
        let index = self.generated.len();
        let sink = Arc::clone(&self.run.media_sink);
        let checked = self.within_deadline(async { Ok(sink.check(media, index).await) }).await?;
        self.generated.push(checked);
        Ok(())
    }

    async fn finish(&mut self, mut assembler: Box<Assembler>) -> State {
        // The provider charges also for a reply that ended early, or that was stopped at its first violation.
        if assembler.is_unfinished() && provider::calls_model(self.run.provider.as_ref()) {
            assembler.lose_reply(self.estimate());
        }
        // Before the tool calls, whose limits compare the tokens and the cost so far.
        self.set_cost(&mut assembler);
        self.spend(&assembler);
        let mut assembler = match self.request_calls(assembler).await {
            Ok(state) => return state,
            Err(assembler) => assembler,
        };
        self.record_answer(&assembler);
        self.limit_attempts(&mut assembler);
        let generated = std::mem::take(&mut self.generated);
        assembler.set_next(!self.run.others.is_empty());
        let mut pending = assembler.close(!generated.is_empty());
        let completed = match self.complete(&mut pending, generated).await {
            Ok(()) => self.explain(&mut pending).await,
            failed => failed,
        };
        if let Err(error) = completed {
            pending.fail(error, self.started.elapsed(), &mut self.out);
            return State::Ended;
        }
        let judged = pending.judge();
        let found = match self.check_answer(judged.accepted().cloned()).await {
            Ok(found) => found,
            Err(error) => {
                judged.fail(error, self.started.elapsed(), &mut self.out);
                return State::Ended;
            }
        };
        let judged = judged.reject(found.into_iter().map(|found| (found.path, found.message)));
        if let Some(slot) = &self.run.judgement_slot {
            slot.set(judged.deferred());
        }
        let mut last = Vec::new();
        let finish = judged.finish(self.started.elapsed(), &mut last);
        self.store(&mut last).await;
        self.out.extend(last);
        match finish {
            Finish::Ended => State::Ended,
            Finish::Next(assembler, error) => {
                let ErrorCode::Standard(code) = error.code else { return self.fail(assembler, error) };
                // The next provider is asked as if it were the first: without corrections of answers that it did not give.
                self.run.request.messages.0.truncate(self.initial_messages);
                self.reasoning.clear();
                self.fall_back(assembler, code, error)
            }
            Finish::Again(assembler, correction) => {
                self.run.request.timeout = Some(self.remaining());
                let provider = self.run.provider.info().name.clone().into_owned();
                let reasoning = Reasoning { provider, items: std::mem::take(&mut self.reasoning) };
                let messages = &mut self.run.request.messages;
                if let Some(recorder) = &mut self.run.recorder {
                    recorder.add(Message::user(correction.feedback.clone()));
                }
                request::correct(messages, self.initial_messages, correction, reasoning);
                self.is_sized = false;
                State::Calling(assembler)
            }
        }
    }

    /// Sets the cost of the reply so far. It is unknown for generated media without token counts of their own, because
    /// their tokens have another price.
    fn set_cost(&self, assembler: &mut Assembler) {
        let provider = self.run.provider.info();
        let requested = &self.run.request.model;
        let has_media = !self.generated.is_empty();
        assembler.set_cost(|model, usage| {
            let is_counted = usage.output_image_tokens.or(usage.output_audio_tokens).is_some();
            if has_media && !is_counted {
                None
            } else {
                provider.reply_cost(requested, model, usage, clock::now())
            }
        });
    }

    fn fail(&mut self, mut assembler: Box<Assembler>, error: ErrorBody) -> State {
        self.set_cost(&mut assembler);
        self.spend(&assembler);
        self.record_answer(&assembler);
        assembler.fail(error, self.started.elapsed(), &mut self.out);
        State::Ended
    }

    /// Ends a run whose reply did not arrive, or only in part.
    fn lose_reply(&mut self, mut assembler: Box<Assembler>, error: ErrorBody) -> State {
        if provider::calls_model(self.run.provider.as_ref()) {
            assembler.lose_reply(self.estimate());
        }
        self.fail(assembler, error)
    }

    /// Returns an estimate of the tokens of the current call so far, and of their cost.
    fn estimate(&self) -> Usage {
        let provider = self.run.provider.as_ref();
        let model = request::model_of(&self.run.request, provider);
        let input_tokens = request_size::estimate(&self.run.request, model);
        budget::estimate(provider.info(), model, input_tokens, self.output_bytes)
    }
}

/// Returns the code of an error before the call that another provider may not have: this one does not support the media,
/// or not their size, or an option of the run.
fn fallback_code(error: &ErrorBody) -> Option<Code> {
    match error.code {
        ErrorCode::Standard(
            code @ (Code::MultimodalNotSupported | Code::MediaTooLarge | Code::UnsupportedValue),
        ) => Some(code),
        _ => None,
    }
}

/// Returns a progress chunk for the work before the first call.
fn progress(stage: &str, percent: u8) -> Chunk {
    Chunk::Progress(Progress { percent, stage: Some(stage.to_owned()), ..Progress::default() })
}
