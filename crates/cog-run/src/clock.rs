//! The wall clock, for prices, creation times, and the age of what is stored.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "prices and what is stored depend on the date")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time in seconds, as RFC 3339.
pub(crate) fn now_as_text() -> String {
    humantime::format_rfc3339_seconds(now()).to_string()
}

/// Returns a time in milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
