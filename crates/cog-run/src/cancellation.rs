//! Cancelling a run from outside.

use std::sync::{Arc, OnceLock};

use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use tokio::sync::Notify;

/// Cancels a run from outside. Its call to the provider is dropped at once, and its last chunk is E2010
/// (ruling R40).
///
/// All clones cancel the same run. The default value cancels nothing until [`Cancellation::cancel`] is called.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    reason: OnceLock<CancelReason>,
    notify: Notify,
}

/// The reason of a cancellation: `details.reason` of E2010.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The run was cancelled on request: `cancelled`. It cannot be resumed.
    Cancelled,
    /// The last client disconnected: `client_gone`.
    ClientGone,
    /// The program shuts down: `shutdown`.
    Shutdown,
}

impl Cancellation {
    /// Cancels the run. The first reason counts. A finished run is not changed.
    pub fn cancel(&self, reason: CancelReason) {
        if self.0.reason.set(reason).is_ok() {
            self.0.notify.notify_waiters();
        }
    }

    /// Returns the reason of the cancellation; none before it.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }

    /// Waits until the run is cancelled.
    pub async fn wait(&self) -> CancelReason {
        loop {
            // Created before the check, so that no notification in between is missed.
            let notified = self.0.notify.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            notified.await;
        }
    }
}

impl CancelReason {
    /// Returns the value of `details.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::ClientGone => "client_gone",
            Self::Shutdown => "shutdown",
        }
    }

    /// Returns whether the stream of the run may be resumed.
    pub(crate) const fn may_resume(self) -> bool {
        !matches!(self, Self::Cancelled)
    }

    /// Returns the error of a run that was cancelled for this reason.
    pub fn error(self) -> ErrorBody {
        let message = match self {
            Self::Cancelled => "The run was cancelled",
            Self::ClientGone => "The run was cancelled because its last client disconnected",
            Self::Shutdown => "The run was stopped because the program is shutting down",
        };
        ErrorBody::new(Code::StreamInterrupted, message)
            .with_recoverable(self.may_resume())
            .with_details(Value::from(serde_json::json!({ "reason": self.as_str() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_reason_counts_and_reaches_every_clone() {
        let cancellation = Cancellation::default();
        let waiting = cancellation.clone();
        let waited = async move { waiting.wait().await };
        let cancel = async {
            cancellation.cancel(CancelReason::Shutdown);
            cancellation.cancel(CancelReason::Cancelled);
        };
        let (reason, ()) = tokio::join!(waited, cancel);
        assert_eq!(reason, CancelReason::Shutdown);
        assert_eq!(cancellation.wait().await, CancelReason::Shutdown);
    }
}
