//! The time of the system.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current Unix time in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "data points have the time at which they are read")]
pub(crate) fn now() -> u64 {
    nanoseconds(SystemTime::now())
}

/// Returns a time as Unix time in nanoseconds.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
