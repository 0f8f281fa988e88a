use std::sync::atomic::{AtomicU64, Ordering};

/// The number of jobs that a worker has handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerReport {
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs whose result is an error.
    pub failed: u64,
    /// Jobs that were moved aside.
    pub moved_aside: u64,
    /// Jobs that had a result already.
    pub repeated: u64,
}

/// The same while the worker runs.
#[derive(Debug, Default)]
pub(super) struct Counts([AtomicU64; 4]);

impl Counts {
    pub(super) fn add(&self, is_ok: bool) {
        self.increment(usize::from(!is_ok));
    }

    pub(super) fn aside(&self) {
        self.increment(2);
    }

    pub(super) fn repeat(&self) {
        self.increment(3);
    }

    fn increment(&self, index: usize) {
        if let Some(count) = self.0.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn report(&self) -> WorkerReport {
        let [succeeded, failed, moved_aside, repeated] = &self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkerReport {
            succeeded: read(succeeded),
            failed: read(failed),
            moved_aside: read(moved_aside),
            repeated: read(repeated),
        }
    }
}
