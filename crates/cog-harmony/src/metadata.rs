//! What a message cost, how long it took, and the run to which it belongs (appendix A.6).

use cog_json::{ToJson as _, Value};
use cog_spec::{Cost, Currency, Usage};
use serde::{Deserialize, Serialize};

/// The metadata of a message (appendix A.6). What does not apply to a message is absent; what is unknown is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The tokens of the reply, or those that a tool spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<TokenUsage>,
    /// The cost with its currency, and the source and date of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The duration of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Latency>,
    /// The model that replied, as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_version: Option<String>,
    /// The provider's fingerprint of the system that replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// The session of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The trace of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Whether the model or the provider's filter rejected the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_check: Option<SafetyCheck>,
}

/// The tokens of a message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// The tokens of the input; none if the provider did not report them.
    pub prompt_tokens: Option<u64>,
    /// The tokens of the output.
    pub completion_tokens: Option<u64>,
    /// The tokens of the input that were read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The tokens of the output that were used for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The cost in US dollars; none if it is unknown, or in another currency.
    pub total_cost_usd: Option<f64>,
}

/// The duration of a call in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The time to the first token; none without one.
    pub ttft: Option<u64>,
    /// The time to the end.
    pub total_time: u64,
}

/// The safety check of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SafetyCheck {
    /// Whether the reply was rejected.
    pub flagged: bool,
    /// The reasons: `content_filter`, `refusal`.
    pub categories: Vec<String>,
}

impl Metadata {
    /// Reads the metadata of a message; none if a member has another type.
    pub fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value.node()).ok()
    }

    /// Returns the metadata as JSON.
    pub fn to_value(&self) -> Value {
        Value::parse(&self.to_json()).unwrap_or_default()
    }

    /// Sets the tokens and the cost. None are unknown tokens.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<&Usage>) -> Self {
        self.cost = usage.and_then(|usage| usage.cost);
        let in_usd = self.cost.filter(|cost| cost.currency == Currency::Usd);
        self.token_usage = Some(TokenUsage {
            prompt_tokens: usage.map(|usage| usage.input_tokens),
            completion_tokens: usage.map(|usage| usage.output_tokens),
            cached_input_tokens: usage.and_then(|usage| usage.cached_input_tokens),
            reasoning_tokens: usage.and_then(|usage| usage.reasoning_tokens),
            total_cost_usd: in_usd.map(|cost| cost.amount.as_f64()),
        });
        self
    }
}

// Dates and times as text (RFC 3339), without a clock.

/// Returns whether a string is a date, or a date with a time.
pub(crate) fn is_date(text: &str) -> bool {
    date(text).is_some_and(|rest| rest.is_empty()) || is_date_time(text)
}

/// Returns whether a string is a date with a time and an offset: `2024-03-20T10:00:00Z`.
pub(crate) fn is_date_time(text: &str) -> bool {
    let time = date(text).and_then(|rest| rest.strip_prefix(['T', 't', ' ']));
    time.and_then(time_of_day).is_some_and(|rest| matches!(rest, "Z" | "z") || is_offset(rest))
}

/// Reads a date. Returns the rest.
fn date(text: &str) -> Option<&str> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    ((1..=12).contains(&month) && (1..=days).contains(&day)).then_some(rest)
}

/// Reads hours, minutes and seconds. Returns the rest.
fn time_of_day(text: &str) -> Option<&str> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (rest.len() < fraction.len()).then_some(rest)?
        }
        None => rest,
    };
    (hour < 24 && minute < 60 && second <= 60).then_some(rest)
}

fn is_offset(text: &str) -> bool {
    matches!(offset(text), Some((hour, minute)) if hour < 24 && minute < 60)
}

/// Reads `+01:30` as hours and minutes.
fn offset(text: &str) -> Option<(u32, u32)> {
    let (hour, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    rest.is_empty().then_some((hour, minute))
}

/// Reads a number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(|number| (number, rest)))?
}

#[cfg(test)]
mod tests {
    use cog_spec::{Amount, PriceDate, PriceSource};

    use super::*;

    #[test]
    fn unknown_cost_is_null_and_never_zero() {
        let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
        let json = Metadata::default().with_usage(Some(&usage)).to_json();
        assert_eq!(
            json,
            r#"{"token_usage":{"prompt_tokens":5,"completion_tokens":2,"total_cost_usd":null}}"#
        );
        let json = Metadata::default().with_usage(None).to_json();
        assert!(json.contains(r#""prompt_tokens":null"#), "{json}");
    }

    #[test]
    fn cached_and_reasoning_tokens_are_written_if_they_are_known() {
        let usage = Usage { cached_input_tokens: Some(3), reasoning_tokens: Some(1), ..Usage::default() };
        let json = Metadata::default().with_usage(Some(&usage)).to_json();
        assert!(json.contains(r#""cached_input_tokens":3,"reasoning_tokens":1"#), "{json}");
    }

    #[test]
    fn metadata_reads_back_as_written() {
        let cost = Cost {
            amount: Amount::new(0.002).unwrap(),
            currency: Currency::Usd,
            source: PriceSource::GenaiPrices,
            date: PriceDate::new("2026-11-22").unwrap(),
        };
        let usage = Usage { cost: Some(cost), ..Usage::default() };
        let metadata = Metadata {
            latency_ms: Some(Latency { ttft: Some(400), total_time: 1200 }),
            safety_check: Some(SafetyCheck::default()),
            ..Metadata::default()
        }
        .with_usage(Some(&usage));
        assert_eq!(metadata.token_usage.as_ref().and_then(|usage| usage.total_cost_usd), Some(0.002));
        assert_eq!(Metadata::read(&metadata.to_value()), Some(metadata));
    }

    #[test]
    fn foreign_metadata_may_have_other_members() {
        let read = |text| Metadata::read(&Value::parse(text).unwrap());
        assert_eq!(read(r#"{"own": 1}"#), Some(Metadata::default()));
        assert_eq!(read(r#"{"token_usage": "all"}"#), None);
    }

    #[test]
    fn accepts_dates_and_times() {
        for text in [
            "2024-03-20",
            "2024-02-29",
            "2000-02-29",
            "2024-05-31",
            "2024-04-30",
            "2024-03-20T10:00:00Z",
            "2024-03-20T10:00:00.5+08:00",
            "2024-03-20T23:59:60-23:59",
        ] {
            assert!(is_date(text), "{text}");
        }
        assert!(is_date_time("2024-03-20t10:00:60z"));
    }

    #[test]
    fn rejects_other_text() {
        for text in [
            "",
            "2024",
            "2024-3-20",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-03-20T",
            "2024-03-20T10:00",
            "2024-03-20T10:00:00",
            "2024-03-20T24:00:00Z",
            "2024-03-20T10:60:00Z",
            "2024-03-20T10:00:61Z",
            "2024-03-20T10:00:00+24:00",
            "2024-03-20T10:00:00+08:60",
            "2024-03-20T10:00:00+08:00x",
            "2024-03-20T10:00:00.Z",
            "2024-03-20T10:00:00+0800",
            "été4-03-20",
        ] {
            assert!(!is_date(text), "{text}");
        }
        assert!(!is_date_time("2024-03-20"));
    }
}
