//! Ending a run from outside.

use std::sync::{Arc, OnceLock};

use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use tokio::sync::Notify;

/// Ends a run from outside: its call to the provider is dropped at once, and its last chunk is E2010 (ruling R40).
///
/// Clones end the same run. The default ends nothing until somebody calls [`Cancellation::now`].
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    reason: OnceLock<CancelReason>,
    told: Notify,
}

/// Why a run is ended from outside: `details.reason` of E2010.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Somebody asked for it: `cancelled`. The run is over.
    Cancelled,
    /// Nobody reads it any more: `client_gone`.
    ClientGone,
    /// The program ends: `shutdown`.
    Shutdown,
}

impl Cancellation {
    /// One that ends nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run. The first reason counts; a run that is over stays as it is.
    pub fn now(&self, reason: CancelReason) {
        if self.0.reason.set(reason).is_ok() {
            self.0.told.notify_waiters();
        }
    }

    /// Why the run was ended; none as long as it was not.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }

    /// Waits until the run is to end.
    pub(crate) async fn wait(&self) -> CancelReason {
        loop {
            // GeneratedMedia before the look, so that nothing told in between is missed.
            let told = self.0.told.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            told.await;
        }
    }
}

impl CancelReason {
    /// The word that stands in `details.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::ClientGone => "client_gone",
            Self::Shutdown => "shutdown",
        }
    }

    /// Whether the run may go on in a stream that is resumed.
    pub const fn may_resume(self) -> bool {
        !matches!(self, Self::Cancelled)
    }

    pub(crate) fn error(self) -> ErrorBody {
        let message = match self {
            Self::Cancelled => "The run was cancelled",
            Self::ClientGone => "The run was stopped because nobody reads it any more",
            Self::Shutdown => "The run was stopped because the program ends",
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
        let stop = Cancellation::new();
        let waiting = stop.clone();
        let waited = async move { waiting.wait().await };
        let told = async {
            stop.now(CancelReason::Shutdown);
            stop.now(CancelReason::Cancelled);
        };
        let (reason, ()) = tokio::join!(waited, told);
        assert_eq!(reason, CancelReason::Shutdown);
        assert_eq!(stop.wait().await, CancelReason::Shutdown);
    }
}
