//! Waits for the events of a reply.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use cog_answer::{Assembler, PendingReply};
use cog_harmony::{Message, Role};
use cog_provider::{ModelStream, ProviderError};
use cog_spec::{Chunk, ErrorBody, ModelEvent};
use futures_util::StreamExt as _;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Driver;
use crate::{CancelReason, clock, events::OpenCall, media::GeneratedMedia, preflight};

/// A reply with one timer for all its deadlines.
pub(super) struct Reply {
    events: ModelStream,
    /// Fires at the next deadline, or earlier when that has moved since.
    timer: Pin<Box<Sleep>>,
    fires_at: Instant,
    /// The deadline of the run.
    deadline: Instant,
}

/// The result of waiting for the reply.
pub(super) enum Arrived {
    Event(ModelEvent),
    /// Buffered text is due.
    Due,
    /// The reply is complete.
    Complete,
    Failed(ProviderError),
    /// The run has timed out.
    TimedOut,
    /// The run is cancelled.
    Cancelled(CancelReason),
}

impl Reply {
    pub(super) fn new(events: ModelStream, deadline: Instant) -> Self {
        Self { events, timer: Box::pin(sleep_until(deadline)), fires_at: deadline, deadline }
    }

    /// Waits for the next event, until `due` or the deadline of the run.
    pub(super) async fn next(
        &mut self,
        due: Option<Instant>,
        mut cancelled: Pin<&mut impl Future<Output = CancelReason>>,
    ) -> Arrived {
        poll_fn(|context| {
            // Events first: what has arrived is processed before a deadline that has passed meanwhile.
            if let Poll::Ready(event) = self.events.poll_next_unpin(context) {
                return Poll::Ready(match event {
                    Some(Ok(event)) => Arrived::Event(event),
                    Some(Err(error)) => Arrived::Failed(error),
                    None => Arrived::Complete,
                });
            }
            if let Poll::Ready(reason) = cancelled.as_mut().poll(context) {
                return Poll::Ready(Arrived::Cancelled(reason));
            }
            self.poll_timer(due, context)
        })
        .await
    }

    fn poll_timer(&mut self, due: Option<Instant>, context: &mut Context<'_>) -> Poll<Arrived> {
        let nearest = due.map_or(self.deadline, |due| due.min(self.deadline));
        // The timer is moved only to an earlier time. Moving it for each event costs more than firing too early once.
        if nearest < self.fires_at {
            self.set_timer(nearest);
        }
        while self.timer.as_mut().poll(context).is_ready() {
            if nearest <= Instant::now() {
                return Poll::Ready(if nearest < self.deadline { Arrived::Due } else { Arrived::TimedOut });
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

// Passes what arrives to the tools of a run and to its listeners.

impl Driver {
    /// Passes an event of the reply to the tools, the listeners, the budgets and the cache.
    pub(super) fn observe(&mut self, event: &ModelEvent) {
        if let Some(tools) = &mut self.run.tools {
            tools.observe(event);
        }
        if let Some(recorder) = &mut self.run.recorder {
            recorder.observe(event);
        }
        if let Some(call) = &mut self.call {
            call.observe(event);
        }
        if let Some(call) = &mut self.counted {
            call.observe(event);
        }
        if let Some(cache) = &mut self.run.cache {
            cache.observe(event);
        }
    }

    /// Starts what reports a call to a model.
    pub(super) fn open_call(&mut self) {
        let run = &self.run;
        self.call = match preflight::calls_model(run.provider.as_ref()) {
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
            recorder.end_reply(assembler, Message::new(Role::Assistant, Vec::new()));
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
        let store = move || {
            let not_cached = cache.and_then(|cache| cache.store(clock::now()));
            let not_stored = sink.map(|sink| sink.add(emitted.as_ref(), &data));
            not_cached.into_iter().chain(not_stored.unwrap_or_default()).collect::<Vec<_>>()
        };
        let stored = tokio::task::spawn_blocking(store).await;
        warnings.extend(stored.unwrap_or_default());
    }
}
