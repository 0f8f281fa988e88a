use std::{path::PathBuf, time::Duration};

use crate::RecoveryOffer;

/// How much is kept, and for how long.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionSettings {
    /// How long a session is kept that runs no more: 15 minutes.
    pub keep: Duration,
    /// How many sessions are kept that run no more: 1,000.
    pub finished: usize,
    /// The bytes of all logs together: 64 MiB. Over it, sessions that run no more leave, the oldest first; after
    /// them, the oldest entries of the logs that grow.
    pub bytes: usize,
    /// The bytes of one log: 16 MiB, 1 GiB at most. Over it, its oldest entries leave, and it has no file any more.
    pub session_bytes: usize,
    /// Where sessions are kept on disk; none to keep them in memory alone.
    pub state_dir: Option<PathBuf>,
    /// What the end of a stream that was cut says of how to go on; none where nothing can be resumed (E4012).
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
