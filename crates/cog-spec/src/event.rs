//! The events of a provider's reply, without its wire form.

use cog_json::{Node, Value};
use serde::{Deserialize, Serialize};

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

/// A part of a tool call. The first part of an index names the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// The index of the call in the reply.
    pub index: u32,
    /// The identifier of the call, in its first part.
    pub id: Option<String>,
    /// The name of the tool, in its first part.
    pub name: Option<String>,
    /// A part of the arguments, JSON as text.
    pub arguments: String,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "usage"))]
#[serde(into = "UsageForm")]
pub struct Usage {
    /// The tokens of the input, including cached ones.
    pub input_tokens: u64,
    /// The tokens of the output, including reasoning.
    pub output_tokens: u64,
    /// The tokens of the input that were read from the provider's cache.
    pub cached_input_tokens: Option<u64>,
    /// The tokens of the output that were used for reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// The members of a usage, with the sum.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "usage"))]
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
    /// The tokens of the output that were used for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
}

impl From<Usage> for UsageForm {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
        let total_tokens = usage.total();
        Self { input_tokens, output_tokens, total_tokens, cached_input_tokens, reasoning_tokens }
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

    /// Returns the tokens of two replies together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: sum(self.cached_input_tokens, other.cached_input_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}
