//! The events of a provider's reply, without its wire form.

use cog_json::{Node, Value};
use serde::{Deserialize, Serialize};

use crate::Cost;

/// A part of a model's reply, in the order in which the parts arrive.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The reply has started.
    Started {
        /// The model that replies, as the provider names it.
        model: Option<String>,
        /// The provider's identifier of the reply.
        id: Option<String>,
        /// The provider's fingerprint of the system that replies.
        fingerprint: Option<String>,
    },
    /// A part of the answer's text.
    Text(String),
    /// The tokens of the answer's text that arrived last, if the request asks for their probabilities.
    Tokens(Vec<TokenProbability>),
    /// A part of the model's reasoning; never part of the answer.
    Reasoning(String),
    /// A complete item of the reasoning in the provider's own form. Sent back in a later request, it lets the model
    /// continue from there.
    ReasoningItem(Value),
    /// A part of a tool call.
    ToolCall(ToolCallDelta),
    /// A complete generated image or audio clip.
    Media(ModelMedia),
    /// The tokens so far; a later event replaces an earlier one.
    Usage(Usage),
    /// The reason why the model stopped. Only `Usage` may follow.
    Finished(FinishReason),
}

/// A token of an answer, and how probable the model found it among all tokens that it knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TokenProbability {
    /// The text of the token.
    pub text: String,
    /// The natural logarithm of its probability.
    pub logprob: f64,
    /// The most probable tokens at its place with their logarithms, also those that a grammar forbids.
    pub alternatives: Vec<(String, f64)>,
}

/// A part of a tool call. The first part of an index names the call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCallDelta {
    /// The index of the call in the reply.
    pub index: u32,
    /// The identifier of the call, in its first part.
    pub id: Option<String>,
    /// The name of the tool, in its first part.
    pub name: Option<String>,
    /// A part of the arguments, JSON as text.
    pub arguments: String,
    /// What the provider requires back unchanged with this call. It is complete, and replaces an earlier one.
    pub signature: Option<String>,
}

/// A generated media item as it arrived in a reply, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelMedia {
    /// The media type that the provider reports, such as `image/png`.
    pub media_type: Option<String>,
    /// The bytes as base64, as they arrived.
    pub data: String,
    /// The parameters of the generation, reported by the provider or requested (SPEC 4.3.1): `("quality", "high")`. The
    /// model is in [`ModelEvent::Started`].
    pub params: Vec<(&'static str, String)>,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The reply is complete.
    Stop,
    /// The model reached its output limit (E2003).
    Length,
    /// The model refuses, with its explanation if it gives one (E2004, `details.reason`).
    Refusal(Option<String>),
    /// The provider's filter stopped the reply (E2004, `details.reason`).
    ContentFilter,
    /// The provider reached its limit per request, and continues the reply in another request with this token. The
    /// clients of providers send it, so no run receives this reason.
    Continue(String),
    /// The model requests tool calls.
    ToolCalls,
    /// An unknown reason, as the provider reported it.
    Other(String),
}

/// The number of tokens of one or more replies, as the provider counts them (SPEC 3.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "usage"))]
#[serde(into = "UsageForm")]
pub struct Usage {
    /// The tokens of the input, including cached ones.
    pub input_tokens: u64,
    /// The tokens of the output, including reasoning.
    pub output_tokens: u64,
    /// The tokens of the input that were read from the provider's cache.
    pub cached_input_tokens: Option<u64>,
    /// The tokens of the input that were written to the provider's cache.
    pub cache_write_input_tokens: Option<u64>,
    /// The part of the tokens written to the cache that the provider stores for one hour.
    pub cache_write_1h_input_tokens: Option<u64>,
    /// The tokens of the output that were used for reasoning.
    pub reasoning_tokens: Option<u64>,
    /// The part of the input tokens that are audio.
    pub input_audio_tokens: Option<u64>,
    /// The part of the input tokens that are images.
    pub input_image_tokens: Option<u64>,
    /// The part of the output tokens that are audio.
    pub output_audio_tokens: Option<u64>,
    /// The part of the output tokens that are images.
    pub output_image_tokens: Option<u64>,
    /// The class of service that the provider used, as the provider names it.
    pub service_tier: Option<String>,
    /// The number of calls whose tokens were not all counted: estimated for a lost reply, otherwise unknown; none if there
    /// are none.
    pub uncounted_calls: Option<u32>,
    /// The cost; none if no price is known.
    #[serde(default, deserialize_with = "cost_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::CostOrNull"))]
    pub cost: Option<Cost>,
}

/// Reads a cost. One of another form, from another runtime, counts as unknown.
fn cost_if_known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(Cost::deserialize(value.node()).ok())
}

/// The members of a usage, with the sum.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "usage", transform = crate::schema::allow_absent_cost)
)]
struct UsageForm {
    /// The tokens of the input, including cached ones.
    input_tokens: u64,
    /// The tokens of the output, including reasoning.
    output_tokens: u64,
    /// The sum of input and output tokens.
    total_tokens: u64,
    /// The tokens of the input that were read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input_tokens: Option<u64>,
    /// The tokens of the input that were written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_input_tokens: Option<u64>,
    /// The part of the tokens written to the cache that the provider stores for one hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_1h_input_tokens: Option<u64>,
    /// The tokens of the output that were used for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    /// The part of the input tokens that are audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_audio_tokens: Option<u64>,
    /// The part of the input tokens that are images.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_image_tokens: Option<u64>,
    /// The part of the output tokens that are audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_audio_tokens: Option<u64>,
    /// The part of the output tokens that are images.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_image_tokens: Option<u64>,
    /// The class of service that the provider used, as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<String>,
    /// The number of calls whose tokens were not all counted: estimated for a lost reply, otherwise unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted_calls: Option<u32>,
    /// The cost at list prices or the operator's, without taxes and discounts; null if no price is known.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::CostOrNull"))]
    cost: Option<Cost>,
}

impl From<Usage> for UsageForm {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total(),
            cached_input_tokens: usage.cached_input_tokens,
            cache_write_input_tokens: usage.cache_write_input_tokens,
            cache_write_1h_input_tokens: usage.cache_write_1h_input_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            input_audio_tokens: usage.input_audio_tokens,
            input_image_tokens: usage.input_image_tokens,
            output_audio_tokens: usage.output_audio_tokens,
            output_image_tokens: usage.output_image_tokens,
            service_tier: usage.service_tier,
            uncounted_calls: usage.uncounted_calls,
            cost: usage.cost,
        }
    }
}

impl Usage {
    /// Reads a usage of [`Meta`](crate::Meta) or a final chunk; none without the two required counts.
    pub fn read(node: Node<'_>) -> Option<Self> {
        Self::deserialize(node).ok()
    }

    /// Returns the sum of input and output tokens.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the tokens and the cost of two replies together, with the class of service of the later one. The cost is
    /// unknown if one of them is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: sum(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_input_tokens: sum(self.cache_write_input_tokens, other.cache_write_input_tokens),
            cache_write_1h_input_tokens: sum(
                self.cache_write_1h_input_tokens,
                other.cache_write_1h_input_tokens,
            ),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
            input_audio_tokens: sum(self.input_audio_tokens, other.input_audio_tokens),
            input_image_tokens: sum(self.input_image_tokens, other.input_image_tokens),
            output_audio_tokens: sum(self.output_audio_tokens, other.output_audio_tokens),
            output_image_tokens: sum(self.output_image_tokens, other.output_image_tokens),
            service_tier: other.service_tier.clone().or_else(|| self.service_tier.clone()),
            uncounted_calls: match (self.uncounted_calls, other.uncounted_calls) {
                (None, None) => None,
                (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
            },
            cost: self.cost.zip(other.cost).map(|(one, other)| one.plus(&other)),
        }
    }
}

/// Returns the sum of two counts; none if both are unknown.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use cog_json::{ToJson as _, Value};

    use super::*;
    use crate::{Amount, Currency, PriceDate, PriceSource};

    fn cost() -> Option<Cost> {
        Some(Cost {
            amount: Amount::new(0.5)?,
            currency: Currency::Usd,
            source: PriceSource::GenaiPrices,
            date: PriceDate::new("2026-10-26")?,
        })
    }

    fn usage(tier: Option<&str>) -> Usage {
        Usage {
            input_tokens: 100,
            output_tokens: 20,
            cached_input_tokens: Some(30),
            cache_write_input_tokens: Some(40),
            cache_write_1h_input_tokens: Some(10),
            service_tier: tier.map(str::to_owned),
            cost: cost(),
            ..Usage::default()
        }
    }

    #[test]
    fn usage_reads_back_as_written() {
        let written = usage(Some("flex")).to_json();
        assert!(written.contains(r#""cache_write_input_tokens":40"#), "{written}");
        assert!(written.contains(r#""total_tokens":120"#), "{written}");
        assert_eq!(Usage::read(Value::parse(&written).unwrap().node()), Some(usage(Some("flex"))));
    }

    #[test]
    fn sum_has_the_service_tier_of_the_later_reply() {
        let sum = usage(Some("flex")).plus(&usage(Some("default")));
        assert_eq!((sum.cache_write_input_tokens, sum.service_tier.as_deref()), (Some(80), Some("default")));
        assert_eq!(usage(Some("flex")).plus(&usage(None)).service_tier.as_deref(), Some("flex"));
    }

    #[test]
    fn sum_has_a_cost_if_both_costs_are_known() {
        let unknown = Usage { cost: None, ..usage(None) };
        assert_eq!(usage(None).plus(&usage(None)).cost.map(|cost| cost.amount), Amount::new(1.0));
        assert_eq!(usage(None).plus(&unknown).cost, None);
        assert_eq!(unknown.plus(&usage(None)).cost, None);
    }

    #[test]
    fn unknown_cost_is_null_and_may_be_absent() {
        let unknown = Usage { input_tokens: 1, ..Usage::default() };
        let written = unknown.to_json();
        assert_eq!(written, r#"{"input_tokens":1,"output_tokens":0,"total_tokens":1,"cost":null}"#);
        let forms = [
            written.as_str(),
            r#"{"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}"#,
            r#"{"input_tokens": 1, "output_tokens": 0, "cost": 0.5}"#,
            r#"{"input_tokens": 1, "output_tokens": 0, "cost": {"amount": 1, "currency": "XXX", "source": "own"}}"#,
        ];
        for form in forms {
            assert_eq!(Usage::read(Value::parse(form).unwrap().node()), Some(unknown.clone()), "{form}");
        }
    }
}
