use std::{path::PathBuf, time::Duration};

use crate::RecoveryOffer;

/// How much is kept, and for how long.
#[derive(Debug, Clone)]
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
