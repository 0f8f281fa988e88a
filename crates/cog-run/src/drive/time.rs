//! The time limit of a run.

use std::time::Duration;

use cog_provider::{Deadline, ProviderError};
use cog_spec::{Code, ErrorBody};
use tokio::time::Instant;

use super::Driver;

impl Driver {
    pub(super) fn timeout_error(&self) -> ErrorBody {
        let message = format!("the run took longer than {:?}", self.run.timeout);
        ErrorBody::new(Code::StreamTimeout, message).suggest(self.more_time())
    }

    /// Returns the error of a call. If the time of the run has passed, it names the setting of that time.
    pub(super) fn error_of(&self, error: &ProviderError) -> ErrorBody {
        let body = ErrorBody::from(error);
        match error {
            ProviderError::Timeout { deadline: Deadline::Total, .. } => body.suggest(self.more_time()),
            _ => body,
        }
    }

    fn more_time(&self) -> String {
        format!("Raise {}, or request a shorter answer.", self.run.timeout_setting)
    }

    /// Returns the time remaining for the run.
    pub(super) fn remaining(&self) -> Duration {
        self.run.timeout.saturating_sub(self.started.elapsed())
    }

    pub(super) fn deadline(&self) -> Instant {
        self.instant_at(self.run.timeout)
    }

    /// Returns the instant after this time of the run, or one far in the future when it overflows.
    pub(super) fn instant_at(&self, elapsed: Duration) -> Instant {
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.started.checked_add(elapsed).unwrap_or_else(|| self.started + FAR)
    }
}
