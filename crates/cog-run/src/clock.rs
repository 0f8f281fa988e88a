//! The wall clock, for prices, creation times, and the age of what is stored.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "prices and what is stored depend on the date")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time in seconds, as RFC 3339.
pub(crate) fn now_as_text() -> String {
    rfc3339(now())
}

/// Formats a time. A clock that was never set may be before 1970, which the format cannot express.
fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(UNIX_EPOCH)).to_string()
}

/// Returns a time in milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_was_never_set_is_at_1970() {
        assert_eq!(rfc3339(UNIX_EPOCH - std::time::Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }
}
