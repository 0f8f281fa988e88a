use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::http::StatusCode;
use cog_spec::{Code, ErrorBody};
use tokio::sync::{Notify, watch};

use super::refusal::{Reason, Refusal};

/// The shutdown of a server: it refuses new work and counts the work in progress.
#[derive(Clone)]
pub(crate) struct Drain(Arc<Shared>);

struct Shared {
    begun: watch::Sender<bool>,
    over: watch::Sender<bool>,
    in_flight: AtomicUsize,
    finished: Notify,
}

/// Work in progress, until it is dropped.
pub(crate) struct InFlightGuard(Arc<Shared>);

impl Drain {
    /// A server that accepts work.
    pub(crate) fn new() -> Self {
        let (begun, over) = (watch::Sender::new(false), watch::Sender::new(false));
        Self(Arc::new(Shared { begun, over, in_flight: AtomicUsize::new(0), finished: Notify::new() }))
    }

    /// Begins the shutdown: no new work.
    pub(crate) fn begin(&self) {
        self.0.begun.send_replace(true);
    }

    /// Whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.begun.borrow()
    }

    /// Waits until the shutdown begins.
    pub(crate) async fn begun(&self) {
        let mut begun = self.0.begun.subscribe();
        // The sender lives as long as `self`.
        let _ = begun.wait_for(|begun| *begun).await;
    }

    /// Tells the remaining work to stop.
    pub(crate) fn stop(&self) {
        self.0.over.send_replace(true);
    }

    /// Waits until the remaining work must stop.
    pub(crate) async fn over(&self) {
        let mut over = self.0.over.subscribe();
        // The sender lives as long as `self`.
        let _ = over.wait_for(|over| *over).await;
    }

    /// Checks that the server accepts work.
    ///
    /// # Errors
    /// 503 E4001 during shutdown; the connection closes.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !self.has_begun() {
            return Ok(());
        }
        let error = ErrorBody::new(Code::ProviderUnavailable, "the server is shutting down")
            .suggest("retry in a moment; another instance may respond");
        let refusal = Refusal::new(Reason::Drain, StatusCode::SERVICE_UNAVAILABLE, error);
        Err(refusal.retry_after(std::time::Duration::from_secs(1)).close())
    }

    /// Counts work in progress.
    pub(crate) fn enter(&self) -> InFlightGuard {
        self.0.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(Arc::clone(&self.0))
    }

    /// Waits until no work is in progress.
    pub(crate) async fn idle(&self) {
        loop {
            let finished = self.0.finished.notified();
            if self.0.in_flight.load(Ordering::SeqCst) == 0 {
                return;
            }
            finished.await;
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.finished.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{http::header, response::IntoResponse as _};
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn new_work_is_refused_during_shutdown() {
        let drain = Drain::new();
        drain.check().unwrap();
        assert!(drain.begun().now_or_never().is_none());
        drain.begin();
        drain.begun().await;
        let response = drain.check().unwrap_err().into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[header::CONNECTION], "close");
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }

    #[tokio::test]
    async fn idle_when_all_work_has_ended() {
        let drain = Drain::new();
        drain.idle().await;
        let (first, second) = (drain.enter(), drain.enter());
        let mut idle = Box::pin(drain.idle());
        assert!(idle.as_mut().now_or_never().is_none());
        drop(first);
        assert!(idle.as_mut().now_or_never().is_none());
        drop(second);
        idle.await;
    }
}
