//! Waits for the events of a reply.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use cog_provider::{ModelStream, ProviderError};
use cog_spec::ModelEvent;
use futures_util::StreamExt as _;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::CancelReason;

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
