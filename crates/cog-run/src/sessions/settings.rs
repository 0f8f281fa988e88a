use std::{path::PathBuf, time::Duration};

use crate::RecoveryOffer;

/// The limits and the directory of a store of sessions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionSettings {
    /// The time for which a finished session is stored: 15 minutes.
    pub keep: Duration,
    /// The maximum number of finished sessions: 1,000.
    pub finished: usize,
    /// The maximum bytes of all logs together: 64 MiB.
    ///
    /// Over this limit, finished sessions are removed, the oldest first. Then the oldest entries of growing
    /// logs are dropped.
    pub bytes: usize,
    /// The maximum bytes of one log: 16 MiB by default, at most 1 GiB. Over this limit, its oldest entries
    /// are dropped, and its file is removed.
    pub session_bytes: usize,
    /// The directory that stores sessions; none stores them in memory only.
    pub state_dir: Option<PathBuf>,
    /// The recovery offer in the final event of an interrupted stream; none disables resuming (E4012).
    pub recovery: Option<RecoveryOffer>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(15 * 60),
            finished: 1000,
            bytes: 64 << 20,
            session_bytes: 16 << 20,
            state_dir: None,
            recovery: Some(RecoveryOffer { retry_after_ms: 1000, max_retries: 3 }),
        }
    }
}

impl SessionSettings {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a finished session is stored.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// Sets how many finished sessions are stored.
    #[must_use]
    pub fn finished(mut self, finished: usize) -> Self {
        self.finished = finished;
        self
    }

    /// Sets the maximum bytes of all logs together.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum bytes of one log.
    #[must_use]
    pub fn session_bytes(mut self, session_bytes: usize) -> Self {
        self.session_bytes = session_bytes;
        self
    }

    /// Stores sessions in a directory too.
    #[must_use]
    pub fn state_dir(mut self, state_dir: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(state_dir.into());
        self
    }

    /// Sets what an interrupted stream offers; none disables resuming.
    #[must_use]
    pub fn recovery(mut self, recovery: Option<RecoveryOffer>) -> Self {
        self.recovery = recovery;
        self
    }
}
