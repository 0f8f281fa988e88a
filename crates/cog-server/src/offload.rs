//! Runs work that grows with the size of a request outside the event loop.

use std::{future::pending, num::NonZero, panic::resume_unwind, sync::Arc, thread::available_parallelism};

use tokio::{sync::Semaphore, task::spawn_blocking};

/// The size of a request, in bytes, from which its work runs on another thread. Switching threads costs more than the
/// work of a smaller request.
const MIN_BYTES: usize = 64 << 10;

/// Threads for the work of large requests. There are as many as processors; more work waits.
pub(crate) struct Offload(Arc<Semaphore>);

impl Offload {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))))
    }

    /// Runs the work for a request of this size: at once, or on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if bytes < MIN_BYTES {
            return work();
        }
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await;
        blocking(move || {
            // The work continues after its client disconnects, and is counted until it ends.
            let _permit = permit;
            work()
        })
        .await
    }
}

/// Runs work that waits for files or takes long on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and drops this task.
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use futures_util::FutureExt as _;

    use super::*;

    async fn thread_of(bytes: usize) -> ThreadId {
        Offload::new().run(bytes, || thread::current().id()).await
    }

    #[tokio::test]
    async fn only_large_requests_leave_the_event_loop() {
        assert_eq!(thread_of(MIN_BYTES - 1).await, thread::current().id());
        assert_ne!(thread_of(MIN_BYTES).await, thread::current().id());
    }

    #[tokio::test]
    async fn work_over_the_limit_waits() {
        let offload = Offload(Arc::new(Semaphore::new(1)));
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(offload.run(MIN_BYTES, move || gate.recv().unwrap()));
        let mut second = Box::pin(offload.run(MIN_BYTES, || ()));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        // The permit is held after the caller is dropped.
        drop(first);
        assert!(offload.0.try_acquire().is_err());
        open.send(()).unwrap();
        second.await;
    }

    #[tokio::test]
    #[should_panic(expected = "a defect")]
    async fn panic_reaches_the_request() {
        Offload::new().run(MIN_BYTES, || panic!("a defect")).await;
    }
}
