use std::{path::PathBuf, time::Duration};

use crate::RecoveryOffer;

/// The limits and the directory of a store of sessions.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The time for which a finished session is stored: 15 minutes by default.
    pub ttl: Duration,
    /// The maximum number of finished sessions: 1,000 by default.
    pub max_sessions: usize,
    /// The maximum bytes of all logs together: 64 MiB by default.
    ///
    /// Over this limit, finished sessions are removed, the oldest first. Then the oldest entries of growing
    /// logs are dropped.
    pub max_total_bytes: usize,
    /// The maximum bytes of one log: 16 MiB by default, at most 1 GiB. Over this limit, its oldest entries
    /// are dropped, and its file is removed.
    pub max_session_bytes: usize,
    /// The directory that stores sessions; none stores them in memory only.
    pub state_dir: Option<PathBuf>,
    /// The recovery offer in the final event of an interrupted stream; none disables resuming (E4012).
    pub recovery: Option<RecoveryOffer>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15 * 60),
            max_sessions: 1000,
            max_total_bytes: 64 << 20,
            max_session_bytes: 16 << 20,
            state_dir: None,
            recovery: Some(RecoveryOffer { retry_after_ms: 1000, max_retries: 3 }),
        }
    }
}
