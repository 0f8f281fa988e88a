//! The asynchronous part of a run: calls the model and passes its events to the assembler.

mod reply;

use std::{pin::pin, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, Assembler, Finish, Step};
use cog_media::{media_processed, media_validation};
use cog_provider::{ModelStream, ProviderError};
use cog_spec::{Chunk, Code, ErrorBody, Fallback, ModelEvent, ModelMedia, Progress};
use tokio::{
    task::consume_budget,
    time::{Instant, timeout_at},
};

use self::reply::{Arrived, Reply};
use crate::{
    media::{self, Collected, GeneratedMedia, Opened, Opening},
    plan::Plan,
    request,
    stream::Outlet,
};

/// A run in progress.
pub(crate) struct Driver {
    run: Plan,
    /// The number of messages in the request, without those that correct a failed answer.
    asked: usize,
    /// The media for a fallback provider, when there is one.
    media: Option<Collected>,
    state: State,
    /// The generated media of the reply so far.
    made: Vec<GeneratedMedia>,
    /// The outlet for the chunks.
    out: Outlet,
    started: Instant,
}

enum State {
    /// Opens and checks the media of the input.
    Collecting(Box<Assembler>, Opening),
    /// Prepares the media for the provider.
    Preparing(Box<Assembler>, Collected),
    /// Calls the provider.
    Calling(Box<Assembler>),
    /// Reads the reply.
    Reading(Box<Assembler>, ModelStream),
    /// The last chunk is in the outlet.
    Ended,
}

impl Driver {
    pub(crate) fn new(mut run: Plan, rules: AnswerRules, mut out: Outlet) -> Self {
        let (mut assembler, first) = Assembler::new(rules);
        out.push(first);
        assembler.tick(Duration::ZERO, &mut out);
        let asked = run.request.messages.messages().len();
        let assembler = Box::new(assembler);
        let state = match run.media.take() {
            Some(sources) => {
                out.push(progress("media_fetch", 0));
                State::Collecting(assembler, sources.open())
            }
            None => State::Calling(assembler),
        };
        let started = Instant::now();
        Self { run, asked, media: None, state, made: Vec::new(), out, started }
    }

    /// Runs to the last chunk. Rare steps are boxed, so that the future of a waiting run is small.
    pub(crate) async fn run(mut self) {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Collecting(assembler, opening) => Box::pin(self.collect(assembler, opening)).await,
                State::Preparing(assembler, media) => Box::pin(self.prepare(assembler, media)).await,
                State::Calling(assembler) => self.ask(assembler).await,
                State::Reading(assembler, reply) => self.read(assembler, reply).await,
                State::Ended => return,
            };
        }
    }

    async fn collect(&mut self, assembler: Box<Assembler>, mut opening: Opening) -> State {
        let done = match self.in_time(async { Ok(opening.next().await) }).await {
            Ok(Opened::Some(percent)) => {
                // Opening the media counts as 5 percent of a run.
                self.out.push(progress("media_fetch", percent / 20));
                return State::Collecting(assembler, opening);
            }
            Ok(Opened::All(done)) => *done,
            Err(error) => Err(error),
        };
        match done {
            Ok(media) => {
                self.out.push(progress("media_convert", 5));
                State::Preparing(assembler, media)
            }
            Err(error) => self.fail(assembler, error),
        }
    }

    async fn prepare(&mut self, mut assembler: Box<Assembler>, media: Collected) -> State {
        let provider = Arc::clone(&self.run.provider);
        let shown = match self.in_time(media.prepare(provider.as_ref())).await {
            Ok(all) => self.run.show(media.input(), all).await,
            Err(error) => Err(error),
        };
        self.media = (!self.run.others.is_empty()).then_some(media);
        match shown {
            Ok(all) => {
                assembler.set_media(media_processed(&all), media_validation(&all), media::warnings(&all));
                State::Calling(assembler)
            }
            Err(error) => match media::untaken(&error) {
                Some(code) => self.pass_over(assembler, code, error),
                None => self.fail(assembler, error),
            },
        }
    }

    /// Waits for work that may fail, until the run is cancelled or times out.
    async fn in_time<T>(&mut self, work: impl Future<Output = Result<T, ErrorBody>>) -> Result<T, ErrorBody> {
        tokio::select! {
            biased;
            reason = self.run.cancellation.wait() => Err(reason.error()),
            done = timeout_at(self.deadline(), work) => done.unwrap_or_else(|_| Err(self.lateness())),
        }
    }

    async fn ask(&mut self, assembler: Box<Assembler>) -> State {
        let asking = async { self.run.provider.call(&self.run.request).await };
        let asked = tokio::select! {
            biased;
            reason = self.run.cancellation.wait() => return self.fail(assembler, reason.error()),
            asked = timeout_at(self.deadline(), asking) => asked,
        };
        match asked {
            Ok(Ok(reply)) => State::Reading(assembler, reply),
            Ok(Err(error)) => self.unanswered(assembler, &error),
            Err(_) => self.too_late(assembler),
        }
    }

    /// Handles a call that returned no reply.
    fn unanswered(&mut self, assembler: Box<Assembler>, error: &ProviderError) -> State {
        if error.allows_fallback() {
            return self.pass_over(assembler, error.code(), ErrorBody::from(error));
        }
        self.fail(assembler, ErrorBody::from(error))
    }

    /// Calls the next provider, when there is one. The media are prepared again for it.
    fn pass_over(&mut self, mut assembler: Box<Assembler>, code: Code, error: ErrorBody) -> State {
        let Some(next) = self.run.others.pop_front() else { return self.fail(assembler, error) };
        let passed_over = Fallback {
            provider: self.run.provider.info().name.clone().into_owned(),
            code,
            message: error.message,
        };
        tracing::warn!(
            provider = passed_over.provider,
            error = passed_over.message,
            next = %next.info().name,
            "calling the next provider"
        );
        let messages = std::mem::take(&mut self.run.request.messages);
        self.run.request = self.run.question.to(next.as_ref(), "", messages, self.left());
        self.run.provider = next;
        let provider = self.run.provider.as_ref();
        let model = request::model_of(&self.run.request, provider);
        let dialect = request::dialect_of(&self.run.request, provider);
        assembler.fall_back_to(&provider.info().name, model, dialect, passed_over);
        match self.media.take() {
            Some(media) => State::Preparing(assembler, media),
            None => State::Calling(assembler),
        }
    }

    /// Reads the complete reply. Available events are processed before it waits.
    async fn read(&mut self, mut assembler: Box<Assembler>, reply: ModelStream) -> State {
        let cancellation = self.run.cancellation.clone();
        let mut cancelled = pin!(cancellation.wait());
        let mut reply = Reply::new(reply, self.deadline());
        loop {
            consume_budget().await;
            if let Some(reason) = cancellation.reason() {
                return self.fail(assembler, reason.error());
            }
            let due = assembler.due().map(|due| self.after(due));
            let step = match reply.next(due, cancelled.as_mut()).await {
                Arrived::Event(ModelEvent::Media(medium)) => match Box::pin(self.check(medium)).await {
                    Ok(()) => Step::Continue,
                    Err(error) => return self.fail(assembler, error),
                },
                Arrived::Event(event) => assembler.event(event, self.started.elapsed(), &mut self.out),
                Arrived::Due => {
                    assembler.tick(self.started.elapsed(), &mut self.out);
                    Step::Continue
                }
                Arrived::Over => Step::Stop,
                Arrived::Fault(error) => return self.fail(assembler, ErrorBody::from(&error)),
                Arrived::Late => return self.too_late(assembler),
                Arrived::Cancelled(reason) => return self.fail(assembler, reason.error()),
            };
            if step == Step::Stop {
                drop(reply);
                return Box::pin(self.finish(assembler)).await;
            }
        }
    }

    /// Checks a media item that the model generated.
    async fn check(&mut self, medium: ModelMedia) -> Result<(), ErrorBody> {
        let (nth, makes) = (self.made.len(), Arc::clone(&self.run.makes));
        let made = self.in_time(async { Ok(makes.check(medium, nth).await) }).await?;
        self.made.push(made);
        Ok(())
    }

    async fn finish(&mut self, assembler: Box<Assembler>) -> State {
        let made = std::mem::take(&mut self.made);
        let mut closing = assembler.close(!made.is_empty());
        let makes = Arc::clone(&self.run.makes);
        if let Err(error) = self.in_time(makes.settle(&mut closing, made)).await {
            closing.fail(error, self.started.elapsed(), &mut self.out);
            return State::Ended;
        }
        match closing.finish(self.started.elapsed(), &mut self.out) {
            Finish::Ended => State::Ended,
            Finish::Again(assembler, correction) => {
                self.run.request.timeout = Some(self.left());
                request::correct(&mut self.run.request.messages, self.asked, correction);
                State::Calling(assembler)
            }
        }
    }

    fn fail(&mut self, assembler: Box<Assembler>, error: ErrorBody) -> State {
        assembler.fail(error, self.started.elapsed(), &mut self.out);
        State::Ended
    }

    fn too_late(&mut self, assembler: Box<Assembler>) -> State {
        self.fail(assembler, self.lateness())
    }

    fn lateness(&self) -> ErrorBody {
        let message = format!("the run took longer than {:?}", self.run.timeout);
        ErrorBody::new(Code::StreamTimeout, message).suggest("raise --timeout, or request a shorter answer")
    }

    /// Returns the time left for the run.
    fn left(&self) -> Duration {
        self.run.timeout.saturating_sub(self.started.elapsed())
    }

    fn deadline(&self) -> Instant {
        self.after(self.run.timeout)
    }

    /// Returns the instant after this time of the run, or one far in the future when it overflows.
    fn after(&self, elapsed: Duration) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.started.checked_add(elapsed).unwrap_or_else(|| self.started + FAR)
    }
}

/// Returns a progress chunk for the work before the first call.
fn progress(stage: &str, percent: u8) -> Chunk {
    Chunk::Progress(Progress { percent, stage: Some(stage.to_owned()), ..Progress::default() })
}
