//! The wall clock, for the prices of a reply and the creation time of messages.

use std::time::SystemTime;

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "prices change with the date; no other decision depends on it")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}
