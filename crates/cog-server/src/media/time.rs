use std::time::SystemTime;

/// The current time of day, for the expiry that clients see.
#[expect(clippy::disallowed_methods, reason = "clients see the expiry as a time of day")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Formats a time as SPEC 4.3 does: `2026-02-04T12:00:00Z` (RFC 3339).
pub(super) fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_770_206_400, "2026-02-04T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
