//! What entries and labels have in common: a time, and the module of a run.

use std::time::{SystemTime, UNIX_EPOCH};

use cog_module::Origin;

/// Whether a logged module is this one.
pub(super) fn is_of(origin: &Origin, name: &str, directory: Option<&str>) -> bool {
    match origin {
        Origin::BuiltIn(module) => directory.is_none() && name == module.name,
        _ => directory == directory_of(origin).as_deref(),
    }
}

/// Returns the directory of a module; none if it is built in.
pub(super) fn directory_of(origin: &Origin) -> Option<String> {
    let Origin::Directory(directory) = origin else { return None };
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    Some(directory.to_string_lossy().into_owned())
}

#[expect(clippy::disallowed_methods, reason = "the log has the time of each run; no decision depends on it")]
pub(super) fn now() -> String {
    rfc3339(SystemTime::now())
}

/// Formats a time. A clock that was never set may be before 1970, which the format cannot express.
fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_before_1970_is_the_first_one() {
        for before in [Duration::from_nanos(1), Duration::from_secs(20 * 365 * 24 * 3600)] {
            assert_eq!(rfc3339(UNIX_EPOCH - before), "1970-01-01T00:00:00Z");
        }
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(1)), "1970-01-01T00:00:01Z");
    }
}
