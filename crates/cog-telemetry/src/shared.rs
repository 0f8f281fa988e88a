//! What runs and the thread that exports share.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::sync::Notify;

use crate::{content::Redact, instruments::Instruments, queue::Queue, settings::TelemetrySettings};

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
    pub(crate) redact: Option<Redact>,
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
            let is_open = |state: &mut State| *state != State::Closed;
            let waited = self.changed.wait_timeout_while(state, timeout, is_open);
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
