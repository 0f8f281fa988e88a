//! Calling the model, and passing what it says to the assembler: the part of a run that waits.

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

/// A run on its way.
pub(crate) struct Driver {
    run: Plan,
    /// How many messages the question has without what is said of an answer that failed.
    asked: usize,
    /// What another provider would be shown too, where there is one.
    media: Option<Collected>,
    state: State,
    /// The media of the reply so far.
    made: Vec<GeneratedMedia>,
    /// Where its chunks go.
    out: Outlet,
    started: Instant,
}

enum State {
    /// The media of the input are to be opened and checked.
    Collecting(Box<Assembler>, Opening),
    /// They are to be made what the provider takes.
    Preparing(Box<Assembler>, Collected),
    /// The provider is to be asked.
    Calling(Box<Assembler>),
    /// The reply arrives.
    Reading(Box<Assembler>, ModelStream),
    /// The last chunk is ready, or gone.
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

    /// Runs to the last chunk. The rare steps are boxed, so that a run that waits for its reply is small.
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
                // Opening them is the first twentieth of a run.
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

    /// Waits for work that may fail, unless the run is ended or late before.
    async fn in_time<T>(&mut self, work: impl Future<Output = Result<T, ErrorBody>>) -> Result<T, ErrorBody> {
        tokio::select! {
            biased;
            reason = self.run.stop.wait() => Err(reason.error()),
            done = timeout_at(self.deadline(), work) => done.unwrap_or_else(|_| Err(self.lateness())),
        }
    }

    async fn ask(&mut self, assembler: Box<Assembler>) -> State {
        let asking = async { self.run.provider.ask(&self.run.request).await };
        let asked = tokio::select! {
            biased;
            reason = self.run.stop.wait() => return self.fail(assembler, reason.error()),
            asked = timeout_at(self.deadline(), asking) => asked,
        };
        match asked {
            Ok(Ok(reply)) => State::Reading(assembler, reply),
            Ok(Err(error)) => self.unanswered(assembler, &error),
            Err(_) => self.too_late(assembler),
        }
    }

    /// Nothing of an answer came.
    fn unanswered(&mut self, assembler: Box<Assembler>, error: &ProviderError) -> State {
        if error.another_may_answer() {
            return self.pass_over(assembler, error.code(), ErrorBody::from(error));
        }
        self.fail(assembler, ErrorBody::from(error))
    }

    /// The next provider is asked, where there is one. It gets the media anew, as it takes them.
    fn pass_over(&mut self, mut assembler: Box<Assembler>, code: Code, error: ErrorBody) -> State {
        let Some(next) = self.run.others.pop_front() else { return self.fail(assembler, error) };
        let passed_over =
            Fallback { provider: self.run.provider.name().to_owned(), code, message: error.message };
        tracing::warn!(
            provider = passed_over.provider,
            error = passed_over.message,
            next = next.name(),
            "asking the next provider"
        );
        let messages = std::mem::take(&mut self.run.request.messages);
        self.run.request = self.run.question.to(next.as_ref(), "", messages, self.left());
        self.run.provider = next;
        let provider = self.run.provider.as_ref();
        let model = request::model_of(&self.run.request, provider);
        let dialect = request::dialect_of(&self.run.request, provider);
        assembler.fall_back_to(provider.name(), model, dialect, passed_over);
        match self.media.take() {
            Some(media) => State::Preparing(assembler, media),
            None => State::Calling(assembler),
        }
    }

    /// Reads the reply to its end. Whatever is there is taken before anything is waited for.
    async fn read(&mut self, mut assembler: Box<Assembler>, reply: ModelStream) -> State {
        let stop = self.run.stop.clone();
        let mut stopped = pin!(stop.wait());
        let mut reply = Reply::new(reply, self.deadline());
        loop {
            consume_budget().await;
            if let Some(reason) = stop.reason() {
                return self.fail(assembler, reason.error());
            }
            let due = assembler.due().map(|due| self.after(due));
            let step = match reply.next(due, stopped.as_mut()).await {
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
                Arrived::Stopped(reason) => return self.fail(assembler, reason.error()),
            };
            if step == Step::Stop {
                drop(reply);
                return Box::pin(self.finish(assembler)).await;
            }
        }
    }

    /// MediaCapabilities a medium that the model made.
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
        ErrorBody::new(Code::StreamTimeout, message).suggest("allow more time (--timeout), or ask for less")
    }

    /// How long the run may still take.
    fn left(&self) -> Duration {
        self.run.timeout.saturating_sub(self.started.elapsed())
    }

    fn deadline(&self) -> Instant {
        self.after(self.run.timeout)
    }

    /// The instant after so much of the run; far in the future where that cannot be told.
    fn after(&self, elapsed: Duration) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.started.checked_add(elapsed).unwrap_or_else(|| self.started + FAR)
    }
}

/// Tells what is done before anybody is asked.
fn progress(stage: &str, percent: u8) -> Chunk {
    Chunk::Progress(Progress { percent, stage: Some(stage.to_owned()), ..Progress::default() })
}
