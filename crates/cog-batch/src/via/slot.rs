//! The row for which the provider is called.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use cog_provider::WireRequest;

use crate::RowHash;

tokio::task_local! {
    static SLOT: Arc<Slot>;
}

/// The row that runs.
pub(crate) struct Slot {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    /// The number of calls so far.
    calls: AtomicU32,
    /// Where the request goes that would be sent.
    request: Option<Mutex<Option<WireRequest>>>,
}

impl Slot {
    /// Creates the slot of a row that takes its reply from a job.
    pub(crate) fn answered(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: None })
    }

    /// Creates the slot of a row whose request is captured.
    pub(super) fn captured(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: Some(Mutex::default()) })
    }

    /// Runs a future for this row.
    pub(crate) async fn run<T>(self: Arc<Self>, run: impl Future<Output = T>) -> T {
        SLOT.scope(self, run).await
    }

    /// Returns the row that runs.
    pub(super) fn current() -> Option<Arc<Self>> {
        SLOT.try_with(Arc::clone).ok()
    }

    /// Counts a call. Returns the number of those before it.
    pub(super) fn count(&self) -> u32 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_captured(&self) -> bool {
        self.request.is_some()
    }

    /// Stores the request, unless there is one already.
    pub(super) fn put(&self, request: WireRequest) {
        if let Some(slot) = &self.request {
            slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request);
        }
    }

    /// Returns the request.
    pub(super) fn take(&self) -> Option<WireRequest> {
        self.request.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
