//! How fast rows are sent, by the limits of the caller and what the vendor's replies say.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cog_run::{Call, CallOutcome, Code, Ended, Observer, provider::ReplyHead};

use crate::{
    concurrency::{Concurrency, Limit},
    rate::{Rate, is_overload},
};

/// How fast rows are sent. Clones share one state.
///
/// The runtime of the batch must have it as its observer, so that it learns of the vendor's replies.
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    limit: Limit,
    rate: Rate,
}

impl Pace {
    /// Creates a pace with a number of rows at the same time, and limits per minute.
    #[must_use]
    pub fn new(concurrency: Concurrency, rpm: Option<u32>, tpm: Option<u64>) -> Self {
        let state = State { limit: Limit::new(concurrency), rate: Rate::new(rpm, tpm, Instant::now()) };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the observer for the runtime of the batch.
    #[must_use]
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// Returns the number of rows that may run at the same time.
    pub(crate) fn limit(&self) -> usize {
        self.lock().limit.value()
    }

    /// Returns the time at which the next row may start.
    pub(crate) fn ready_at(&self, now: Instant) -> Instant {
        self.lock().rate.ready_at(now)
    }

    /// Returns the time until which the vendor accepts no requests.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.lock().rate.paused_until(now)
    }

    /// Records that a row starts, and returns the tokens that are reserved for it.
    pub(crate) fn start(&self, now: Instant) -> f64 {
        self.lock().rate.start(now)
    }

    /// Records that a row has ended.
    pub(crate) fn end(&self, run: &RunPace, now: Instant) {
        let mut state = self.lock();
        state.rate.end(run.reserved, run.tokens, now);
        (1..run.calls).for_each(|_| state.rate.call(now));
        if run.is_answered {
            state.limit.answered(run.latency, run.is_full);
        }
    }

    /// Starts no row for this time.
    pub(crate) fn pause(&self, length: Duration, now: Instant) {
        self.lock().rate.pause(length, now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the pace learns from a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunPace {
    /// The tokens that were reserved for it.
    pub(crate) reserved: f64,
    /// The tokens that it used, if they are known.
    pub(crate) tokens: Option<u64>,
    /// The calls to the model.
    pub(crate) calls: u32,
    /// The time from its start to its end.
    pub(crate) latency: Duration,
    /// Whether as many rows ran as are allowed.
    pub(crate) is_full: bool,
    /// Whether the provider answered.
    pub(crate) is_answered: bool,
}

impl Observer for Pace {
    fn called(&self, call: &Call<'_>) {
        let now = Instant::now();
        match call.outcome {
            CallOutcome::Retried(code) => {
                let mut state = self.lock();
                state.rate.call(now);
                if code == Code::RateLimited {
                    state.limit.overloaded(now);
                }
            }
            CallOutcome::Failed(Code::RateLimited) => self.lock().limit.overloaded(now),
            _ => {}
        }
    }

    fn replied(&self, head: &ReplyHead) {
        let has_limits = head.requests.is_some() || head.tokens.is_some();
        if !has_limits && !is_overload(head.status) {
            return;
        }
        let (mut state, now) = (self.lock(), Instant::now());
        state.rate.replied(head, now);
        if is_overload(head.status) {
            state.limit.overloaded(now);
        }
    }

    fn ended(&self, _: &Ended<'_>) {}
}
