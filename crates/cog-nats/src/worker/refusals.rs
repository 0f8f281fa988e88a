//! How often the provider refused this worker in sequence: its key is wrong, or its account is used up.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The refusals in sequence after which the worker pauses, as many as end a batch in one process.
const MAX: u32 = 20;
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The refusals since a job was answered.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    /// The pauses since then.
    pauses: u32,
}

impl Refusals {
    /// Records that the provider refused a job.
    pub(super) fn refused(&self) {
        self.change(|state| state.count = state.count.saturating_add(1));
    }

    /// Records that the provider answered a job.
    pub(super) fn answered(&self) {
        self.change(|state| *state = State::default());
    }

    /// Returns the time for which the worker takes no job, after which it takes one. The time doubles.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.change(|state| {
            let pause = MIN_PAUSE * 2_u32.saturating_pow(state.pauses.min(6));
            (state.count >= MAX).then(|| {
                state.pauses += 1;
                pause.min(MAX_PAUSE)
            })
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_that_is_refused_pauses_longer_and_longer_until_it_is_answered() {
        let refusals = Refusals::default();
        (1..MAX).for_each(|_| refusals.refused());
        assert_eq!(refusals.pause(), None);
        refusals.refused();
        let mut seconds = || refusals.pause().map(|pause| pause.as_secs());
        let pauses: Vec<_> = std::iter::repeat_with(&mut seconds).take(8).flatten().collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        refusals.answered();
        assert_eq!(refusals.pause(), None);
    }
}
