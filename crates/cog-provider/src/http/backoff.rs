//! Delays before retries.

use std::time::Duration;

use httpdate::parse_http_date;

/// The maximum first delay; the maximum doubles with each retry.
const FIRST: Duration = Duration::from_millis(500);
/// The maximum delay, unless the vendor requests a longer one.
const MAX: Duration = Duration::from_secs(8);
/// The maximum delay that a vendor may request. A longer one is reported to the caller as an error.
const MAX_REQUESTED: Duration = Duration::from_secs(60);

/// Returns the delay before the next attempt: full jitter, and at least what the vendor requests. Returns `None` if
/// the vendor requests more than `MAX_REQUESTED`. `chance` is between 0 and 1.
pub(super) fn delay(attempt: u32, requested: Option<Duration>, chance: f64) -> Option<Duration> {
    let max = FIRST.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX)).min(MAX);
    let jitter = max.mul_f64(chance.clamp(0.0, 1.0));
    match requested {
        Some(requested) if requested > MAX_REQUESTED => None,
        Some(requested) => Some(requested.max(jitter)),
        None => Some(jitter),
    }
}

/// Parses `Retry-After-Ms` or `Retry-After`: milliseconds, seconds, or a date. A date is relative to the reply's own
/// `Date`, so the result does not depend on the local clock.
pub(super) fn retry_after(ms: Option<&str>, after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    if let Some(ms) = ms.and_then(number) {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    let after = after?;
    if let Some(seconds) = number(after) {
        return Some(Duration::from_secs_f64(seconds));
    }
    let then = parse_http_date(after).ok()?;
    let now = parse_http_date(date?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn maximum_delay_doubles_with_each_retry() {
        assert_eq!(delay(0, None, 0.0), Some(MS(0)));
        assert_eq!(delay(0, None, 1.0), Some(MS(500)));
        assert_eq!(delay(1, None, 0.5), Some(MS(500)));
        assert_eq!(delay(3, None, 1.0), Some(MS(4_000)));
        assert_eq!(delay(40, None, 1.0), Some(MS(8_000)));
    }

    #[test]
    fn delay_is_at_least_what_the_vendor_requests() {
        assert_eq!(delay(0, Some(MS(3_000)), 1.0), Some(MS(3_000)));
        assert_eq!(delay(0, Some(MS(10)), 1.0), Some(MS(500)));
        assert_eq!(delay(0, Some(MS(60_000)), 0.0), Some(MS(60_000)));
        assert_eq!(delay(0, Some(MS(60_001)), 0.0), None);
    }

    #[test]
    fn parses_milliseconds_seconds_and_dates() {
        let date = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(retry_after(None, Some("2"), None), Some(MS(2_000)));
        assert_eq!(retry_after(Some("40"), Some("2"), None), Some(MS(40)));
        assert_eq!(retry_after(None, Some("Wed, 21 Oct 2026 07:28:05 GMT"), date), Some(MS(5_000)));
        assert_eq!(retry_after(None, Some("Wed, 21 Oct 2026 07:27:00 GMT"), date), Some(MS(0)));
        for invalid in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(retry_after(None, Some(invalid), date), None, "{invalid}");
        }
    }
}
