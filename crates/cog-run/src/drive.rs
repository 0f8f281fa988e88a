//! Calling the model, and passing what it says to the assembler: the part of a run that waits.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, Assembler, Finish, Step};
use cog_media::{media_processed, media_validation};
use cog_provider::{ModelStream, ProviderError};
use cog_spec::{Chunk, Code, ErrorBody, Fallback, ModelEvent, Progress};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::{
    media::{self, Collected, GeneratedMedia, Opened, Opening},
    plan::Plan,
    request,
};

/// A run on its way, and the chunks that are ready to leave.
pub(crate) struct Driver {
    run: Plan,
    /// How many messages the question has without what is said of an answer that failed.
    asked: usize,
    /// What another provider would be shown too, where there is one.
    media: Option<Collected>,
    state: State,
    /// The media of the reply so far.
    made: Vec<GeneratedMedia>,
    ready: VecDeque<Chunk>,
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

/// What waiting for the reply brought.
enum Arrived {
    Event(ModelEvent),
    /// What was held back is due to leave.
    Due,
    /// The reply is over.
    Over,
    Fault(ProviderError),
    /// The run has taken too long.
    Late,
}

impl Driver {
    pub(crate) fn new(mut run: Plan, rules: AnswerRules) -> Box<Self> {
        let (mut assembler, first) = Assembler::new(rules);
        let mut ready = VecDeque::from([first]);
        assembler.tick(Duration::ZERO, &mut ready);
        let asked = run.request.messages.messages().len();
        let assembler = Box::new(assembler);
        let state = match run.media.take() {
            Some(sources) => {
                ready.push_back(progress("media_fetch", 0));
                State::Collecting(assembler, sources.open())
            }
            None => State::Calling(assembler),
        };
        let started = Instant::now();
        Box::new(Self { run, asked, media: None, state, made: Vec::new(), ready, started })
    }

    /// The next chunk; none after the last. In a box, so that a step does not move all of it.
    pub(crate) async fn next(mut self: Box<Self>) -> Option<(Chunk, Box<Self>)> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some((chunk, self));
            }
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Collecting(assembler, opening) => self.collect(assembler, opening).await,
                State::Preparing(assembler, media) => self.prepare(assembler, media).await,
                State::Calling(assembler) => self.ask(assembler).await,
                State::Reading(assembler, reply) => self.read(assembler, reply).await,
                State::Ended => return None,
            };
        }
    }

    async fn collect(&mut self, assembler: Box<Assembler>, mut opening: Opening) -> State {
        let done = match self.in_time(async { Ok(opening.next().await) }).await {
            Ok(Opened::Some(percent)) => {
                // Opening them is the first twentieth of a run.
                self.ready.push_back(progress("media_fetch", percent / 20));
                return State::Collecting(assembler, opening);
            }
            Ok(Opened::All(done)) => *done,
            Err(error) => Err(error),
        };
        match done {
            Ok(media) => {
                self.ready.push_back(progress("media_convert", 5));
                State::Preparing(assembler, media)
            }
            Err(error) => self.fail(assembler, error),
        }
    }

    async fn prepare(&mut self, mut assembler: Box<Assembler>, media: Collected) -> State {
        let provider = Arc::clone(&self.run.provider);
        let prepared = self.in_time(media.prepare(provider.as_ref())).await;
        let shown = prepared.and_then(|all| self.run.show(media.input(), &all).map(|()| all));
        self.media = (!self.run.others.is_empty()).then_some(media);
        match shown {
            Ok(all) => {
                assembler.saw(media_processed(&all), media_validation(&all), media::warnings(&all));
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
        assembler.turn_to(provider.name(), model, dialect, passed_over);
        match self.media.take() {
            Some(media) => State::Preparing(assembler, media),
            None => State::Calling(assembler),
        }
    }

    async fn read(&mut self, mut assembler: Box<Assembler>, mut reply: ModelStream) -> State {
        let deadline = self.deadline();
        let due = assembler.due().map_or(deadline, |due| self.after(due).min(deadline));
        if let Some(reason) = self.run.stop.reason() {
            return self.fail(assembler, reason.error());
        }
        let arrived = tokio::select! {
            biased;
            arrived = wait(&mut reply, due, deadline) => arrived,
            reason = self.run.stop.wait() => return self.fail(assembler, reason.error()),
        };
        let now = self.started.elapsed();
        match arrived {
            Arrived::Event(ModelEvent::Media(medium)) => {
                let nth = self.made.len();
                let makes = Arc::clone(&self.run.makes);
                match self.in_time(async { Ok(makes.check(medium, nth).await) }).await {
                    Ok(made) => self.made.push(made),
                    Err(error) => return self.fail(assembler, error),
                }
                State::Reading(assembler, reply)
            }
            Arrived::Event(event) => match assembler.event(event, now, &mut self.ready) {
                Step::Continue => State::Reading(assembler, reply),
                Step::Stop => self.finish(assembler).await,
            },
            Arrived::Due => {
                assembler.tick(now, &mut self.ready);
                State::Reading(assembler, reply)
            }
            Arrived::Over => self.finish(assembler).await,
            Arrived::Fault(error) => self.fail(assembler, ErrorBody::from(&error)),
            Arrived::Late => self.too_late(assembler),
        }
    }

    async fn finish(&mut self, assembler: Box<Assembler>) -> State {
        let made = std::mem::take(&mut self.made);
        let mut closing = assembler.close(!made.is_empty());
        let makes = Arc::clone(&self.run.makes);
        if let Err(error) = self.in_time(makes.settle(&mut closing, made)).await {
            closing.fail(error, self.started.elapsed(), &mut self.ready);
            return State::Ended;
        }
        match closing.finish(self.started.elapsed(), &mut self.ready) {
            Finish::Ended => State::Ended,
            Finish::Again(assembler, correction) => {
                self.run.request.timeout = Some(self.left());
                request::correct(&mut self.run.request.messages, self.asked, correction);
                State::Calling(assembler)
            }
        }
    }

    fn fail(&mut self, assembler: Box<Assembler>, error: ErrorBody) -> State {
        assembler.fail(error, self.started.elapsed(), &mut self.ready);
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

/// Waits for the reply, no longer than what is held back may wait, nor than the run may take.
async fn wait(reply: &mut ModelStream, due: Instant, deadline: Instant) -> Arrived {
    match timeout_at(due, reply.next()).await {
        Ok(Some(Ok(event))) => Arrived::Event(event),
        Ok(Some(Err(error))) => Arrived::Fault(error),
        Ok(None) => Arrived::Over,
        Err(_) if due < deadline => Arrived::Due,
        Err(_) => Arrived::Late,
    }
}
