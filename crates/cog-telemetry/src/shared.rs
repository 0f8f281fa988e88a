//! What runs and the thread that exports share.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{mapping::Redact, metrics::Instruments, settings::TelemetrySettings};

/// What a collector did not receive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DroppedTelemetry {
    /// The number of spans.
    pub spans: u64,
    /// The number of exports of metrics.
    pub exports: u64,
    /// The first reason.
    pub reason: Option<String>,
}

/// What runs and the thread that exports share.
pub(crate) struct Shared {
    pub(crate) settings: TelemetrySettings,
    /// Masks keys.
    pub(crate) redact: Redact,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) instruments: Mutex<Instruments>,
    /// When the metrics began to count, in nanoseconds.
    pub(crate) counting_since: Mutex<u64>,
    /// Wakes the thread for a full batch, and at the end.
    pub(crate) wake: Notify,
    /// The number of spans in the export that runs.
    pub(crate) in_flight: AtomicU64,
    pub(crate) dropped_spans: AtomicU64,
    pub(crate) dropped_exports: AtomicU64,
    pub(crate) reason: Mutex<Option<String>>,
    pub(crate) started: Once,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

/// How far the thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not started: there was no span.
    Idle,
    /// It exports.
    Running,
    /// It exports what is left.
    Closing,
    /// It has ended.
    Closed,
}

impl Shared {
    /// Adds a span to the queue. One that does not fit is counted.
    pub(crate) fn push(&self, span: &[u8]) {
        let pushed = lock(&self.queue).push(span);
        match pushed {
            Some(true) => self.wake.notify_one(),
            Some(false) => {}
            None => {
                self.dropped_spans.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns whether the thread shall end.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(*lock(&self.state), State::Closing | State::Closed)
    }

    pub(crate) fn set_state(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_all();
    }

    /// Counts what a collector did not receive. Only the first reason is a warning, since a collector that is gone would cause
    /// many.
    pub(crate) fn lose(&self, spans: u64, exports: u64, reason: String) {
        self.dropped_spans.fetch_add(spans, Relaxed);
        self.dropped_exports.fetch_add(exports, Relaxed);
        let mut first = lock(&self.reason);
        if first.is_none() {
            tracing::warn!(target: "cog", reason, "telemetry is not delivered; what is lost is only counted from now on");
            *first = Some(reason);
        } else {
            tracing::debug!(target: "cog", reason, spans, exports, "telemetry is not delivered");
        }
    }

    /// Ends the thread, and waits for it. Returns what was not delivered.
    pub(crate) fn close(&self, timeout: Duration) -> DroppedTelemetry {
        let mut state = lock(&self.state);
        if *state == State::Running {
            *state = State::Closing;
            self.wake.notify_one();
            let waited = self.changed.wait_timeout_while(state, timeout, |state| *state != State::Closed);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *state != State::Closed {
                let waiting = lock(&self.queue).clear() as u64 + self.in_flight.swap(0, Relaxed);
                let reason =
                    format!("the collector did not answer within {timeout:?} at the end of the program");
                self.lose(waiting, 0, reason);
            }
        }
        *state = State::Closed;
        drop(state);
        DroppedTelemetry {
            spans: self.dropped_spans.load(Relaxed),
            exports: self.dropped_exports.load(Relaxed),
            reason: lock(&self.reason).clone(),
        }
    }
}

/// Locks a mutex, also after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// The spans that wait for their export.

/// The maximum bytes that wait.
const MAX_BYTES: usize = 32 << 20;

/// Spans that are exported together, as fields of a message in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The number of spans.
    pub(crate) spans: usize,
    pub(crate) bytes: Vec<u8>,
}

/// A bounded queue of spans, in batches of which only the last is not full.
#[derive(Debug)]
pub(crate) struct Queue {
    batches: VecDeque<Batch>,
    spans: usize,
    bytes: usize,
    /// The maximum number of spans.
    limit: usize,
    /// The number of spans in a full batch.
    batch: usize,
}

impl Queue {
    pub(crate) fn new(limit: usize, batch: usize) -> Self {
        Self { batches: VecDeque::new(), spans: 0, bytes: 0, limit, batch }
    }

    /// Adds a span. Returns whether a batch is now full; none if the span does not fit.
    pub(crate) fn push(&mut self, span: &[u8]) -> Option<bool> {
        // A run never waits for a collector: what does not fit is dropped and counted.
        if self.spans >= self.limit || self.bytes + span.len() > MAX_BYTES {
            return None;
        }
        self.spans += 1;
        self.bytes += span.len();
        if self.batches.back().is_none_or(|last| last.spans >= self.batch) {
            self.batches.push_back(Batch::default());
        }
        let last = self.batches.back_mut()?;
        last.spans += 1;
        last.bytes.extend_from_slice(span);
        Some(last.spans >= self.batch)
    }

    /// Takes the oldest batch: one that is full, or any if the spans are due.
    pub(crate) fn take(&mut self, is_due: bool) -> Option<Batch> {
        let taken = self.batches.pop_front_if(|first| is_due || first.spans >= self.batch)?;
        self.spans -= taken.spans;
        self.bytes -= taken.bytes.len();
        Some(taken)
    }

    /// Removes every span. Returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        self.batches.clear();
        self.bytes = 0;
        std::mem::take(&mut self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_bounded_by_spans_and_bytes() {
        let mut queue = Queue::new(3, 2);
        let full: Vec<_> = (0..4).map(|_| queue.push(&[0; 10])).collect();
        assert_eq!(full, [Some(false), Some(true), Some(false), None]);
        assert_eq!(queue.take(false).map(|batch| (batch.spans, batch.bytes.len())), Some((2, 20)));
        assert_eq!(
            (queue.take(false), queue.take(true).map(|batch| batch.spans), queue.take(true)),
            (None, Some(1), None)
        );
        assert!(queue.push(&vec![0; MAX_BYTES]).is_some() && queue.push(&[0]).is_none());
        assert_eq!((queue.clear(), queue.push(&[0])), (1, Some(false)));
    }
}
