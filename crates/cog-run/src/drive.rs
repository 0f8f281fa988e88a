//! Asking the model, and passing what it says to the assembler: the part of a run that waits.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, Assembler, Finish, Step};
use cog_provider::{ModelRequest, ModelStream, Provider, ProviderError};
use cog_spec::{Chunk, Code, ErrorBody, Fallback, ModelEvent};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::{
    Stop,
    question::{self, Question},
};

/// Whom to ask, what, and for how long.
pub(crate) struct Plan {
    /// Who is asked first.
    pub(crate) provider: Arc<dyn Provider>,
    /// Who is asked where that one gives no answer, in order.
    pub(crate) others: VecDeque<Arc<dyn Provider>>,
    pub(crate) question: Question,
    /// The question, as the provider is asked it.
    pub(crate) request: ModelRequest,
    pub(crate) timeout: Duration,
    pub(crate) stop: Stop,
}

/// A run on its way, and the chunks that are ready to leave.
pub(crate) struct Driver {
    run: Plan,
    /// How many messages the question has without what is said of an answer that failed.
    asked: usize,
    state: State,
    ready: VecDeque<Chunk>,
    started: Instant,
}

enum State {
    /// The provider is to be asked.
    Asking(Box<Assembler>),
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
    pub(crate) fn new(run: Plan, rules: AnswerRules) -> Self {
        let (mut assembler, first) = Assembler::new(rules);
        let mut ready = VecDeque::from([first]);
        assembler.tick(Duration::ZERO, &mut ready);
        let asked = run.request.messages.messages().len();
        Self { run, asked, state: State::Asking(Box::new(assembler)), ready, started: Instant::now() }
    }

    /// The next chunk; none after the last.
    pub(crate) async fn next(mut self) -> Option<(Chunk, Self)> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some((chunk, self));
            }
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Asking(assembler) => self.ask(assembler).await,
                State::Reading(assembler, reply) => self.read(assembler, reply).await,
                State::Ended => return None,
            };
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

    /// Nothing of an answer came: the next provider is asked, where there is one and it can help.
    fn unanswered(&mut self, mut assembler: Box<Assembler>, error: &ProviderError) -> State {
        let next = error.another_may_answer().then(|| self.run.others.pop_front()).flatten();
        let Some(next) = next else { return self.fail(assembler, ErrorBody::from(error)) };
        let passed_over = Fallback {
            provider: self.run.provider.name().to_owned(),
            code: error.code(),
            message: error.to_string(),
        };
        tracing::warn!(provider = passed_over.provider, %error, next = next.name(), "asking the next provider");
        let messages = std::mem::take(&mut self.run.request.messages);
        self.run.request = self.run.question.to(next.as_ref(), "", messages, self.left());
        self.run.provider = next;
        let provider = self.run.provider.as_ref();
        let model = question::model_of(&self.run.request, provider);
        assembler.turn_to(
            provider.name(),
            model,
            question::dialect_of(&self.run.request, provider),
            passed_over,
        );
        State::Asking(assembler)
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
            Arrived::Event(event) => match assembler.event(event, now, &mut self.ready) {
                Step::Continue => State::Reading(assembler, reply),
                Step::Stop => self.finish(assembler),
            },
            Arrived::Due => {
                assembler.tick(now, &mut self.ready);
                State::Reading(assembler, reply)
            }
            Arrived::Over => self.finish(assembler),
            Arrived::Fault(error) => self.fail(assembler, ErrorBody::from(&error)),
            Arrived::Late => self.too_late(assembler),
        }
    }

    fn finish(&mut self, assembler: Box<Assembler>) -> State {
        match assembler.finish(self.started.elapsed(), &mut self.ready) {
            Finish::Ended => State::Ended,
            Finish::Again(assembler, correction) => {
                self.run.request.timeout = Some(self.left());
                question::correct(&mut self.run.request.messages, self.asked, correction);
                State::Asking(assembler)
            }
        }
    }

    fn fail(&mut self, assembler: Box<Assembler>, error: ErrorBody) -> State {
        assembler.fail(error, self.started.elapsed(), &mut self.ready);
        State::Ended
    }

    fn too_late(&mut self, assembler: Box<Assembler>) -> State {
        let message = format!("the run took longer than {:?}", self.run.timeout);
        let error = ErrorBody::new(Code::StreamTimeout, message)
            .suggest("allow more time (--timeout), or ask for less");
        self.fail(assembler, error)
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
