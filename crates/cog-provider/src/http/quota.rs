//! The rate limits that a vendor reports in the headers of a reply.

use std::time::Duration;

use httpdate::parse_http_date;

use super::backoff::retry_after;
use crate::{Quota, ReplyHead, transport::WireReply};

/// The prefixes and suffixes of the headers: those of OpenAI, which most vendors use, and those of Anthropic.
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
    let quota = |names: [[&str; 2]; 2]| {
        names.into_iter().find_map(|[remaining, reset]| {
            let remaining = reply.header(remaining)?.trim().parse().ok()?;
            let reset = reply.header(reset).and_then(|reset| until(reset, date)).unwrap_or_default();
            Some(Quota { remaining, reset })
        })
    };
    ReplyHead {
        status: reply.status,
        retry_after: retry_after(reply.header("retry-after-ms"), reply.header("retry-after"), date),
        requests: quota(REQUESTS),
        tokens: quota(TOKENS),
    }
}

/// Parses the time until a reset: `6m0s`, `59.5s`, `20ms`, seconds, or a date, which is relative to the reply's own `Date`.
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
