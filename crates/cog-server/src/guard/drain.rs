use axum::http::StatusCode;
use cog_spec::{Code, ErrorBody};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use super::refusal::{Reason, Refusal};

/// The shutdown of a server: it refuses new work and counts the work in progress.
#[derive(Clone, Default)]
pub(crate) struct Drain {
    /// Cancelled when the shutdown begins.
    pub(crate) begun: CancellationToken,
    /// Cancelled when the remaining work must stop.
    pub(crate) over: CancellationToken,
    in_flight: TaskTracker,
}

/// Work in progress, until it is dropped.
pub(crate) type InFlightGuard = TaskTrackerToken;

impl Drain {
    /// Checks that the server accepts work.
    ///
    /// # Errors
    /// 503 E4001 during shutdown; the connection closes.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !self.begun.is_cancelled() {
            return Ok(());
        }
        let error = ErrorBody::new(Code::ProviderUnavailable, "the server is shutting down")
            .suggest("Retry in a moment; another instance may respond.");
        let refusal = Refusal::new(Reason::Drain, StatusCode::SERVICE_UNAVAILABLE, error);
        Err(refusal.retry_after(std::time::Duration::from_secs(1)).close())
    }

    /// Counts work in progress.
    pub(crate) fn enter(&self) -> InFlightGuard {
        self.in_flight.token()
    }

    /// Waits until no work is in progress.
    pub(crate) async fn idle(&self) {
        self.in_flight.close();
        self.in_flight.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use axum::{http::header, response::IntoResponse as _};
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn new_work_is_refused_during_shutdown() {
        let drain = Drain::default();
        drain.check().unwrap();
        assert!(drain.begun.cancelled().now_or_never().is_none());
        drain.begun.cancel();
        drain.begun.cancelled().await;
        let response = drain.check().unwrap_err().into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[header::CONNECTION], "close");
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }

    #[tokio::test]
    async fn idle_when_all_work_has_ended() {
        let drain = Drain::default();
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
