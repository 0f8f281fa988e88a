//! Waits for the events of a reply, and does what belongs to it: what is counted, recorded and stored.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cog_answer::{Assembler, PendingReply};
use cog_harmony::{Message, Role};
use cog_json::Value;
use cog_provider::{Deadline, ModelStream, ProviderError};
use cog_spec::{Chunk, Code, ErrorBody, ModelEvent};
use futures_util::StreamExt as _;
use tokio::{
    task::consume_budget,
    time::{Instant, Sleep, sleep_until, timeout_at},
};

use super::{Driver, State};
use crate::{
    CancelReason, CheckViolation, budget, clock, events::OpenCall, media::GeneratedMedia, provider, request,
    request_size,
};

/// A reply with one timer for all its deadlines.
pub(super) struct Reply {
    events: ModelStream,
    /// Fires at the next deadline, or earlier when that has moved since.
    timer: Pin<Box<Sleep>>,
    fires_at: Instant,
    /// The deadline of the run.
    deadline: Instant,
}

/// The result of a call.
pub(super) enum Called {
    Reply(ModelStream),
    Failed(ProviderError),
    /// The run is cancelled, or its time has passed.
    Lost(ErrorBody),
}

/// The result of waiting for the reply.
pub(super) enum Arrived {
    Event(ModelEvent),
    /// Buffered text is due.
    Due,
    /// The reply is complete.
    Complete,
    /// The reply broke off, the run is cancelled, or its time has passed.
    Lost(ErrorBody),
}

/// What ends the wait for a reply.
enum Ready {
    Event(ModelEvent),
    Due,
    Complete,
    Failed(ProviderError),
    TimedOut,
    Cancelled(CancelReason),
}

/// Whether the model may have worked on a call that failed.
pub(super) fn is_lost(error: &ProviderError) -> bool {
    matches!(error.code(), Code::StreamTimeout | Code::StreamInterrupted)
}

impl Reply {
    pub(super) fn new(events: ModelStream, deadline: Instant) -> Self {
        Self { events, timer: Box::pin(sleep_until(deadline)), fires_at: deadline, deadline }
    }

    /// Waits for the next event, until `due` or the deadline of the run.
    async fn next(
        &mut self,
        due: Option<Instant>,
        mut cancelled: Pin<&mut impl Future<Output = CancelReason>>,
    ) -> Ready {
        poll_fn(|context| {
            // Events first: what has arrived is processed before a deadline that has passed meanwhile.
            if let Poll::Ready(event) = self.events.poll_next_unpin(context) {
                return Poll::Ready(match event {
                    Some(Ok(event)) => Ready::Event(event),
                    Some(Err(error)) => Ready::Failed(error),
                    None => Ready::Complete,
                });
            }
            if let Poll::Ready(reason) = cancelled.as_mut().poll(context) {
                return Poll::Ready(Ready::Cancelled(reason));
            }
            self.poll_timer(due, context)
        })
        .await
    }

    fn poll_timer(&mut self, due: Option<Instant>, context: &mut Context<'_>) -> Poll<Ready> {
        let nearest = due.map_or(self.deadline, |due| due.min(self.deadline));
        // The timer is moved only to an earlier time. Moving it for each event costs more than firing too early once.
        if nearest < self.fires_at {
            self.set_timer(nearest);
        }
        while self.timer.as_mut().poll(context).is_ready() {
            if nearest <= Instant::now() {
                return Poll::Ready(if nearest < self.deadline { Ready::Due } else { Ready::TimedOut });
            }
            self.set_timer(nearest);
        }
        Poll::Pending
    }

    fn set_timer(&mut self, at: Instant) {
        self.timer.as_mut().reset(at);
        self.fires_at = at;
    }
}

// Calls the model and reads its reply, for the answer and for the rationale that follows it.

impl Driver {
    /// Sends the request, which the budgets have admitted.
    pub(super) async fn open(&mut self) -> Called {
        self.record_request();
        self.open_call();
        self.output_bytes = 0;
        let call = async { self.run.provider.call(&self.run.request).await };
        let reply = tokio::select! {
            biased;
            reason = self.run.cancellation.wait() => return Called::Lost(reason.error()),
            reply = timeout_at(self.deadline(), call) => reply,
        };
        match reply {
            Ok(Ok(reply)) => Called::Reply(reply),
            Ok(Err(error)) => Called::Failed(error),
            Err(_) => {
                self.call.iter_mut().for_each(|call| call.time_out());
                Called::Lost(self.timeout_error())
            }
        }
    }

    /// Waits for the next event of a reply, until `due` or the deadline of the run. Available events are processed before it
    /// waits.
    pub(super) async fn next(
        &mut self,
        reply: &mut Reply,
        due: Option<Instant>,
        cancelled: Pin<&mut impl Future<Output = CancelReason>>,
    ) -> Arrived {
        // A recording or a fast provider has all events at once: without these two lines, such a reply would neither let other
        // tasks run nor notice a cancellation, which is polled only while no event is available.
        consume_budget().await;
        if let Some(reason) = self.run.cancellation.reason() {
            return Arrived::Lost(reason.error());
        }
        match reply.next(due, cancelled).await {
            Ready::Event(event) => {
                self.observe(&event);
                Arrived::Event(event)
            }
            Ready::Due => Arrived::Due,
            Ready::Complete => Arrived::Complete,
            Ready::Failed(error) => {
                self.call.iter_mut().for_each(|call| call.fail(&error));
                Arrived::Lost(self.error_of(&error))
            }
            Ready::TimedOut => {
                self.call.iter_mut().for_each(|call| call.time_out());
                Arrived::Lost(self.timeout_error())
            }
            Ready::Cancelled(reason) => Arrived::Lost(reason.error()),
        }
    }
}

// Adds to a complete reply what is not in its text, before it is checked.

impl Driver {
    /// Adds generated media to the answer, and to its rules the media that its citations name.
    pub(super) async fn complete(
        &mut self,
        pending: &mut PendingReply,
        generated: Vec<GeneratedMedia>,
    ) -> Result<(), ErrorBody> {
        let sink = Arc::clone(&self.run.media_sink);
        let cited = self.cited.clone();
        self.within_deadline(async {
            sink.add_to(pending, generated).await?;
            if let Some(cited) = cited {
                cited.add_to(pending).await;
            }
            Ok(())
        })
        .await
    }
}

// Checks a valid answer with the checks of the program.

impl Driver {
    /// Returns what the checks of the program find in the data of a valid answer.
    ///
    /// # Errors
    /// A check failed itself, the run was cancelled, or its time has passed.
    pub(super) async fn check_answer(
        &mut self,
        data: Option<Value>,
    ) -> Result<Vec<CheckViolation>, ErrorBody> {
        let checks = self.run.checks.clone();
        let Some(data) = data.filter(|_| !checks.is_empty()) else { return Ok(Vec::new()) };
        let found = self.within_deadline(async {
            let mut found = Vec::new();
            for check in &checks {
                found.extend(check.check(&data).await?);
            }
            Ok(found)
        });
        Box::pin(found).await
    }
}

// Passes what arrives to the tools of a run and to its listeners.

impl Driver {
    /// Passes an event of the reply to the tools, the listeners, the budgets and the cache.
    fn observe(&mut self, event: &ModelEvent) {
        // The request for a rationale offers no tools.
        if let Some(tools) = &mut self.run.tools
            && self.run.request.tools.is_some()
        {
            tools.observe(event);
        }
        if let Some(recorder) = &mut self.run.recorder {
            recorder.observe(event);
        }
        if let Some(call) = &mut self.call {
            call.observe(event);
        }
        self.output_bytes = self.output_bytes.saturating_add(budget::output_bytes(event));
        if let Some(call) = &mut self.counted {
            call.observe(event);
        }
        if let Some(cache) = &mut self.run.cache {
            cache.observe(event);
        }
    }

    /// Starts what reports a call to a model.
    fn open_call(&mut self) {
        let run = &self.run;
        self.call = match provider::calls_model(run.provider.as_ref()) {
            true => OpenCall::start(&run.scope, run.provider.info(), &run.request),
            false => None,
        };
    }

    /// Records the messages of the request.
    pub(super) fn record_request(&mut self) {
        if let Some(recorder) = &mut self.run.recorder {
            recorder.begin(&self.run.request.messages);
        }
    }

    /// Records a reply that requests no tool calls, if there is one.
    pub(super) fn record_answer(&mut self, assembler: &Assembler) {
        if let Some(recorder) = &mut self.run.recorder
            && recorder.has_reply()
        {
            let usage = assembler.reply_usage();
            recorder.end_reply(assembler.model(), usage.as_ref(), Message::new(Role::Assistant, Vec::new()));
        }
    }

    /// Records the results of tools.
    pub(super) fn record(&mut self, messages: &[Message]) {
        if let Some(recorder) = &mut self.run.recorder {
            messages.iter().cloned().for_each(|message| recorder.add(message));
        }
    }
}

// Stores what a successful answer leaves for later runs.

impl Driver {
    /// Stores the emitted context and the reply of a successful answer, before a reader sees the answer: its next run may use
    /// them.
    pub(super) async fn store(&mut self, last: &mut [Chunk]) {
        let Some(Chunk::Final { data, emitted_context, warnings, .. }) = last.last_mut() else { return };
        let sink = self.run.context.take().filter(|sink| sink.is_needed());
        let cache = self.run.cache.take();
        if sink.is_none() && cache.is_none() {
            return;
        }
        let emitted = emitted_context.clone();
        let data = data.clone();
        let stored = tokio::task::spawn_blocking(move || {
            let not_cached = cache.and_then(|cache| cache.store(clock::now()));
            let not_stored = sink.map(|sink| sink.add(emitted.as_ref(), &data));
            not_cached.into_iter().chain(not_stored.unwrap_or_default()).collect::<Vec<_>>()
        });
        warnings.extend(stored.await.unwrap_or_default());
    }
}

// Counts the calls of a run in its budgets.

impl Driver {
    /// Counts a call to a model.
    ///
    /// # Errors
    /// E4002 if a budget is spent.
    pub(super) fn admit(&mut self) -> Result<(), ErrorBody> {
        let run = &self.run;
        if run.budgets.is_empty() || !provider::calls_model(run.provider.as_ref()) {
            return Ok(());
        }
        let model = request::model_of(&run.request, run.provider.as_ref());
        let input = request_size::input_tokens(&run.request, model, &run.budgets);
        let provider = Arc::clone(&run.provider);
        let module = &run.spec.module.manifest.name;
        let max_output = run.request.generation.max_tokens;
        let call = budget::OpenCall::new(&run.budgets, module, provider, model, input, max_output)?;
        let counter = call.counter();
        let hook = run.spec.listeners.retry_hook(run.provider.info(), move || counter.admit_retry());
        self.run.request.on_retry = Some(hook);
        self.counted = Some(call);
        Ok(())
    }

    /// Ends a run whose next call a budget refuses. Another run can spend the budget after [`Self::limit_attempts`].
    pub(super) fn refuse(&mut self, mut assembler: Box<Assembler>, error: ErrorBody) -> State {
        self.set_cost(&mut assembler);
        self.spend(&assembler);
        self.record_answer(&assembler);
        assembler.refuse(error, self.started.elapsed(), &mut self.out);
        State::Ended
    }

    /// Makes this attempt the last one if a budget is spent, so that a failure of the answer is not lost.
    pub(super) fn limit_attempts(&self, assembler: &mut Assembler) {
        if !provider::calls_model(self.run.provider.as_ref()) {
            return;
        }
        if let Some(error) = self.run.budgets.iter().find_map(|budget| budget.check().err()) {
            assembler.end_attempts(error);
        }
    }

    /// Adds the tokens and the cost of the current call, and reports its end.
    pub(super) fn spend(&mut self, assembler: &Assembler) {
        if let Some(mut call) = self.call.take() {
            // A span has only what the provider counted.
            call.set_usage(assembler.reply_usage().filter(|_| !assembler.is_estimated()));
        }
        if let Some(call) = self.counted.take() {
            call.end(assembler.reply_usage().filter(|_| !assembler.is_uncounted()));
        }
    }

    /// Ends the current call without tokens, because the provider rejected it. Returns the error of the budget that refused to
    /// retry it, if one did.
    pub(super) fn refund(&mut self) -> Option<ErrorBody> {
        self.counted.take().and_then(budget::OpenCall::reject)
    }
}

// The time limit of a run.

impl Driver {
    pub(super) fn timeout_error(&self) -> ErrorBody {
        let message = format!("the run took longer than {:?}", self.run.timeout);
        ErrorBody::new(Code::StreamTimeout, message).suggest(self.more_time())
    }

    /// Returns the error of a call. If the time of the run has passed, it names the setting of that time.
    pub(super) fn error_of(&self, error: &ProviderError) -> ErrorBody {
        let body = ErrorBody::from(error);
        match error {
            ProviderError::Timeout { deadline: Deadline::Total, .. } => body.suggest(self.more_time()),
            _ => body,
        }
    }

    fn more_time(&self) -> String {
        format!("Raise {}, or request a shorter answer.", self.run.timeout_setting)
    }

    /// Returns the time remaining for the run.
    pub(super) fn remaining(&self) -> Duration {
        self.run.timeout.saturating_sub(self.started.elapsed())
    }

    pub(super) fn deadline(&self) -> Instant {
        self.instant_at(self.run.timeout)
    }

    /// Returns the instant after this time of the run, or one far in the future when it overflows.
    pub(super) fn instant_at(&self, elapsed: Duration) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.started.checked_add(elapsed).unwrap_or_else(|| self.started + FAR)
    }
}
