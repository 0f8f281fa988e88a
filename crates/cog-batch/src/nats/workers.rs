//! Whether a worker takes the jobs of a queue.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::Queue;

/// The time without a result after which workers are looked for, and between two of these times.
const QUIET: Duration = Duration::from_secs(5);

/// Notices that no worker takes jobs.
pub(super) struct WorkerWatch(Mutex<State>);

struct State {
    next: Instant,
    is_absent: bool,
}

impl State {
    fn new() -> Self {
        Self { next: Instant::now() + QUIET, is_absent: false }
    }
}

impl WorkerWatch {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::new()))
    }

    /// Notes that a result has arrived.
    pub(super) fn has_result(&self) {
        *self.state() = State::new();
    }

    /// Looks for workers. Of the rows that wait, one looks for all.
    pub(super) async fn look(&self, queue: &Queue) {
        if !self.begin() {
            return;
        }
        if let Ok(has_workers) = queue.has_workers().await {
            self.state().is_absent = !has_workers;
        }
    }

    /// Returns whether it is time to look.
    fn begin(&self) -> bool {
        let mut state = self.state();
        let is_due = state.next <= Instant::now();
        if is_due {
            state.next = Instant::now() + QUIET;
        }
        is_due
    }

    /// Returns whether no worker took jobs when they were looked for.
    pub(super) fn is_absent(&self) -> bool {
        self.state().is_absent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
