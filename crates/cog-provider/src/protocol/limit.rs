//! What an error says about the limit that was reached, apart from its words: whether it passes, and when.
//!
//! Vendors send the same words for a limit per minute and for an account that is used up ("You exceeded your current
//! quota"), so the details decide first.

use std::time::Duration;

use cog_json::Node;

use super::reply::elements;

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// Requests are accepted again, after this time if the vendor names one.
    Passing(Option<Duration>),
    /// Waiting for minutes does not help: the limit is one per day, or it is 0.
    Spent,
}

/// The maximum delay that is read: a year.
const MAX_DELAY: f64 = 366.0 * 86_400.0;

impl ReachedLimit {
    /// Reads the details of an error, then the numbers in its message.
    pub(crate) fn read(error: Node<'_>, message: &str) -> Option<Self> {
        let delay = elements(error, "details").find_map(|detail| duration(detail.get("retryDelay")?));
        let delay = delay.or_else(|| delay_in(message));
        let mut violations = elements(error, "details").flat_map(|detail| elements(detail, "violations"));
        // Of several limits, the one that lasts longest decides.
        if violations.clone().any(is_spent) || is_zero_in(message) {
            Some(Self::Spent)
        } else if delay.is_some() || violations.any(|violation| id_has(violation, "PerMinute")) {
            Some(Self::Passing(delay))
        } else {
            None
        }
    }

    /// Returns the delay that the vendor names.
    #[cfg(feature = "http")]
    pub(crate) fn delay(self) -> Option<Duration> {
        match self {
            Self::Passing(delay) => delay,
            Self::Spent => None,
        }
    }
}

/// Returns whether a violated quota is one per day, or grants nothing.
fn is_spent(violation: Node<'_>) -> bool {
    let value = violation.get("quotaValue");
    let is_zero = value.is_some_and(|value| value.as_str() == Some("0") || value.as_u64() == Some(0));
    is_zero || id_has(violation, "PerDay")
}

fn id_has(violation: Node<'_>, part: &str) -> bool {
    violation.get_str("quotaId").is_some_and(|id| id.contains(part))
}

/// Reads a duration of protocol buffers: `2.04s`.
fn duration(node: Node<'_>) -> Option<Duration> {
    seconds(node.as_str()?.strip_suffix('s')?)
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..MAX_DELAY).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Returns whether a message names a limit of 0: `limit: 0, model: …`.
fn is_zero_in(message: &str) -> bool {
    message
        .split("limit: 0")
        .skip(1)
        .any(|after| !after.starts_with(|next: char| next.is_ascii_digit() || next == '.'))
}

/// Reads the delay in a message: `Please retry in 2.04s`, `Please try again in 6m0s`.
fn delay_in(message: &str) -> Option<Duration> {
    let after =
        ["retry in ", "try again in "].into_iter().find_map(|words| Some(message.split_once(words)?.1))?;
    let mut rest = after;
    let mut total: Option<Duration> = None;
    loop {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { return total };
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b'h', ..] => (3_600.0, 1),
            [b'm', ..] => (60.0, 1),
            [b's', ..] => (1.0, 1),
            [b' ', b's', b'e', b'c', ..] => (1.0, unit.len()),
            _ => return total,
        };
        let more = seconds(&(number * factor).to_string())?;
        total = Some(total.unwrap_or_default() + more);
        rest = unit.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn read(details: &str, message: &str) -> Option<ReachedLimit> {
        let error = Value::parse(&format!(r#"{{"details": {details}}}"#)).unwrap();
        ReachedLimit::read(error.node(), message)
    }

    fn passing(seconds: f64) -> Option<ReachedLimit> {
        Some(ReachedLimit::Passing(Some(Duration::from_secs_f64(seconds))))
    }

    #[test]
    fn details_decide() {
        let failure = |id: &str, more: &str| {
            format!(
                r#"{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{{"quotaId": "{id}"{more}}}]}}"#
            )
        };
        let retry = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}"#;
        let minute = failure("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "");
        let day = failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "");
        let none = failure("GenerateContentInputTokensPerModelPerMinute-FreeTier", r#", "quotaValue": "0""#);
        for (details, expected) in [
            (format!("[{minute}]"), Some(ReachedLimit::Passing(None))),
            (format!("[{minute}, {retry}]"), passing(2.5)),
            (format!("[{retry}]"), passing(2.5)),
            (format!("[{day}, {retry}]"), Some(ReachedLimit::Spent)),
            (format!("[{minute}, {day}]"), Some(ReachedLimit::Spent)),
            (format!("[{none}, {retry}]"), Some(ReachedLimit::Spent)),
            (r#"[{"retryDelay": "-1s"}, {"retryDelay": 3}, 5]"#.to_owned(), None),
            ("\"text\"".to_owned(), None),
        ] {
            assert_eq!(read(&details, "You exceeded your current quota"), expected, "{details}");
        }
    }

    #[test]
    fn message_names_a_delay_or_a_limit_of_zero() {
        for (message, expected) in [
            ("Please retry in 2.04s.", passing(2.04)),
            ("Rate limit reached. Please try again in 6m0.5s. Visit …", passing(360.5)),
            ("try again in 20ms", passing(0.02)),
            ("try again in 1h2m3s", passing(3_723.0)),
            ("try again in 20 seconds", passing(20.0)),
            ("try again in a while", None),
            ("try again in 5 days", None),
            ("Quota exceeded, limit: 0, model: x. Please retry in 30s.", Some(ReachedLimit::Spent)),
            ("limit: 0", Some(ReachedLimit::Spent)),
            ("limit: 0.5, retry in 3s", passing(3.0)),
            ("limit: 05", None),
            ("", None),
        ] {
            assert_eq!(read("[]", message), expected, "{message}");
        }
    }
}
