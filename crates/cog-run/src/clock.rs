//! The wall clock, for the prices of a reply and the creation time of messages and packets.

use std::time::SystemTime;

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "prices change with the date; no other decision depends on it")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time in seconds, as RFC 3339.
pub(crate) fn now_as_text() -> String {
    humantime::format_rfc3339_seconds(now()).to_string()
}
