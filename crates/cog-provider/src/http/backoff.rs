//! Delays before retries.

use std::time::Duration;

use httpdate::parse_http_date;

use crate::{Quota, ReplyHead, transport::WireReply};

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

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number| (0.0..1e9).contains(number))
}

// The rate limits that a vendor reports in the headers of a reply.

/// The headers of OpenAI, which most vendors use, and of Anthropic: what is left, and the time of the reset.
const REQUESTS: [[&str; 2]; 2] = [
    ["x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    ["anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"],
];
const TOKENS: [[&str; 2]; 2] = [
    ["x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
    ["anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"],
];

/// Returns what the head of a reply says about the rate limits.
pub(super) fn reply_head(reply: &WireReply) -> ReplyHead {
    let date = reply.header("date");
    ReplyHead {
        status: reply.status,
        retry_after: retry_after(reply.header("retry-after-ms"), reply.header("retry-after"), date),
        requests: quota(reply, REQUESTS),
        tokens: quota(reply, TOKENS),
    }
}

fn quota(reply: &WireReply, names: [[&str; 2]; 2]) -> Option<Quota> {
    names.into_iter().find_map(|[remaining, reset]| {
        let remaining = reply.header(remaining)?.trim().parse().ok()?;
        let reset =
            reply.header(reset).and_then(|reset| until(reset, reply.header("date"))).unwrap_or_default();
        Some(Quota { remaining, reset })
    })
}

/// Parses the time until a reset: `6m0s`, `59.5s`, `20ms`, seconds, or a date, which is relative to the reply's own
/// `Date`.
fn until(reset: &str, date: Option<&str>) -> Option<Duration> {
    if let Some(duration) = duration(reset.trim()) {
        return Some(duration);
    }
    let then = humantime::parse_rfc3339(reset.trim()).ok()?;
    Some(then.duration_since(parse_http_date(date?).ok()?).unwrap_or_default())
}

fn duration(mut text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at_checked(digits)?;
        let unit = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(unit)?;
        sum += number.parse::<f64>().ok()?
            * match unit {
                "ms" => 0.001,
                "" | "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        text = rest;
    }
    Duration::try_from_secs_f64(sum).ok()
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

    fn head(headers: &[(&'static str, &str)]) -> ReplyHead {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        reply_head(&WireReply { status: 200, headers, body: Box::pin(futures_util::stream::empty()) })
    }

    #[test]
    fn reads_the_headers_of_each_vendor() {
        let openai = head(&[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6.5s"),
        ]);
        assert_eq!(openai.requests, Some(Quota { remaining: 0, reset: Duration::from_secs(360) }));
        assert_eq!(openai.tokens, Some(Quota { remaining: 149_984, reset: Duration::from_millis(6_500) }));
        let anthropic = head(&[
            ("date", "Mon, 23 Nov 2026 10:00:00 GMT"),
            ("anthropic-ratelimit-tokens-remaining", "12"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-23T10:00:30Z"),
            ("retry-after", "3"),
        ]);
        assert_eq!(anthropic.tokens, Some(Quota { remaining: 12, reset: Duration::from_secs(30) }));
        assert_eq!((anthropic.requests, anthropic.retry_after), (None, Some(Duration::from_secs(3))));
    }

    #[test]
    fn time_until_a_reset_has_several_forms() {
        let date = Some("Mon, 23 Nov 2026 10:00:00 GMT");
        for (text, millis) in
            [("20ms", 20), ("1s", 1_000), ("1h2m3s", 3_723_000), ("7.66s", 7_660), ("5", 5_000)]
        {
            assert_eq!(until(text, None), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(until("2026-11-23T09:00:00Z", date), Some(Duration::ZERO), "it is over");
        for text in ["", "soon", "1x", "s", "2026-11-23T10:00:30Z", "1e400s"] {
            assert_eq!(until(text, None), None, "{text}");
        }
    }
}
