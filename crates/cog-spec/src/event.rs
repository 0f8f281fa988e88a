//! What a provider's reply becomes once its wire form is gone.

use cog_json::{Node, ToJson, Writer};

/// What a model's reply consists of, in the order in which it arrives.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// What the provider says of itself: the model that answers, and the fingerprint of its system.
    Started {
        /// The model that answers, as the vendor names it.
        model: Option<String>,
        /// The vendor's id of the reply.
        id: Option<String>,
        /// The vendor's fingerprint of the system that answers.
        fingerprint: Option<String>,
    },
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's reasoning; never part of the answer.
    Reasoning(String),
    /// A piece of a tool call.
    ToolCall(ToolCallDelta),
    /// An image or a sound that the model made, whole.
    Media(ModelMedia),
    /// Tokens so far; a later one replaces an earlier one.
    Usage(Usage),
    /// Why the model stopped. Nothing but `Usage` follows.
    Finished(FinishReason),
}

/// A piece of a tool call: the first piece of an index names the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallDelta {
    /// Which call of the reply.
    pub index: u32,
    /// The call's id, on its first piece.
    pub id: Option<String>,
    /// The tool's name, on its first piece.
    pub name: Option<String>,
    /// A piece of the arguments, JSON as text.
    pub arguments: String,
}

/// A medium as a model's reply brings it: nothing of it has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelMedia {
    /// Its type as the vendor gives it, `image/png`; none where the vendor gives none.
    pub media_type: Option<String>,
    /// Its bytes as base64, as they came.
    pub data: String,
    /// How it was made, as the vendor tells it or was asked (SPEC 4.3.1): `("quality", "high")`. The model is told
    /// by [`ModelEvent::Started`].
    pub params: Vec<(&'static str, String)>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It reached its limit of output (E2003).
    Length,
    /// It refuses, with its words where it gives any (E2004, `details.reason`).
    Refusal(Option<String>),
    /// The vendor's filter stopped it (E2004, `details.reason`).
    ContentFilter,
    /// It wants tools called.
    ToolCalls,
    /// A word of the vendor's that is not known here; kept as it came.
    Other(String),
}

/// Tokens of one reply or of several, as the vendor counts them (SPEC 3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens that went in, cached ones included.
    pub input_tokens: u64,
    /// Tokens that came out, reasoning included.
    pub output_tokens: u64,
    /// Of the input: read from the vendor's cache.
    pub cached_input_tokens: Option<u64>,
    /// Of the output: reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Reads a usage as [`Meta`](crate::Meta) and the final chunk have it; none without the two required counts.
    pub fn read(node: Node<'_>) -> Option<Self> {
        let count = |key: &str| node.get(key).and_then(Node::as_u64);
        Some(Self {
            input_tokens: count("input_tokens")?,
            output_tokens: count("output_tokens")?,
            cached_input_tokens: count("cached_input_tokens"),
            reasoning_tokens: count("reasoning_tokens"),
        })
    }

    /// The sum of both.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The tokens of two replies together.
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

impl ToJson for Usage {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("input_tokens", &self.input_tokens);
            w.field("output_tokens", &self.output_tokens);
            w.field("total_tokens", &self.total());
            w.optional("cached_input_tokens", &self.cached_input_tokens);
            w.optional("reasoning_tokens", &self.reasoning_tokens);
        });
    }
}
