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
}
