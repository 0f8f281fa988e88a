use std::time::Duration;

use cog_json::Value;
use cog_spec::{Amount, Cost, Currency};
use serde::{Deserialize, Serialize};

use super::{Content, Links, content};
use crate::{Latency, Message, Role, SafetyCheck, TokenUsage};

/// A message of a timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The index of the message.
    pub index: usize,
    /// Its id.
    pub id: Option<&'a str>,
    /// Its author.
    pub role: Role,
    /// The name of the author.
    pub name: Option<&'a str>,
    /// The model that replied, as the provider names it.
    pub model: Option<&'a str>,
    /// The time at which the message was complete, as Unix time in seconds.
    pub created_at: Option<f64>,
    /// The time from the first start of a message to the start of this one, in milliseconds.
    pub start_ms: Option<u64>,
    /// The time from the start of this message to its first token.
    pub first_token_ms: Option<u64>,
    /// The time from its start to its end; null for a message that no model or tool created.
    pub duration_ms: Option<u64>,
    /// The tokens and the cost; null if the message needed no model.
    pub usage: Option<EntryUsage>,
    /// Why the provider or the model rejected the content: `content_filter`, `refusal`.
    pub flagged: Vec<String>,
    /// Whether it is the answer: the last message, and a reply without tool calls.
    pub is_answer: bool,
    /// The content, without the bytes of media.
    pub content: Vec<Content<'a>>,
    /// The start as Unix time in seconds.
    #[serde(skip)]
    started_at: Option<f64>,
}

/// The tokens and the cost of a message. What is unknown is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct EntryUsage {
    /// The tokens of the input, including cached ones.
    pub input_tokens: Option<u64>,
    /// The tokens of the input that were read from the provider's cache.
    pub cached_input_tokens: Option<u64>,
    /// The tokens of the output, including reasoning.
    pub output_tokens: Option<u64>,
    /// The tokens of the output that were used for reasoning.
    pub reasoning_tokens: Option<u64>,
    /// The cost in US dollars; null if it is unknown, or in another currency.
    pub cost_usd: Option<Amount>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(index: usize, message: &'a Message, links: &Links<'a>) -> Self {
        let metadata = message.metadata.as_ref();
        let latency: Option<Latency> = member(metadata, "latency_ms");
        let safety: Option<SafetyCheck> = member(metadata, "safety_check");
        let duration = latency.map(|latency| Duration::from_millis(latency.total_time));
        let created_at = message.created_at.filter(|time| time.is_finite());
        Self {
            index,
            id: message.id.as_deref(),
            role: message.role,
            name: message.name.as_deref(),
            model: metadata.and_then(|metadata| metadata.get_str("model_version")),
            created_at,
            start_ms: None,
            first_token_ms: latency.and_then(|latency| latency.ttft),
            duration_ms: latency.map(|latency| latency.total_time),
            usage: usage(message.role, metadata),
            flagged: safety.filter(|safety| safety.flagged).map(flagged).unwrap_or_default(),
            is_answer: false,
            content: content(message, links),
            started_at: created_at.map(|time| time - duration.unwrap_or_default().as_secs_f64()),
        }
    }

    /// Returns the time from the first start of a message to the end of this one, in milliseconds.
    pub fn end_ms(&self) -> Option<u64> {
        self.start_ms.map(|start| start.saturating_add(self.duration_ms.unwrap_or_default()))
    }

    pub(super) fn has_calls(&self) -> bool {
        self.content.iter().any(|content| matches!(content, Content::ToolCall { .. }))
    }
}

/// Sets the start of each message from the first one. Times may go backwards.
pub(super) fn set_starts(entries: &mut [Entry<'_>]) {
    let first = entries.iter().filter_map(|entry| entry.started_at).fold(f64::INFINITY, f64::min);
    for entry in entries {
        entry.start_ms = entry.started_at.map(|time| milliseconds(time - first));
    }
}

/// Rounds seconds to milliseconds.
fn milliseconds(seconds: f64) -> u64 {
    let time = Duration::try_from_secs_f64((seconds * 1000.0).round() / 1000.0);
    time.ok().and_then(|time| u64::try_from(time.as_millis()).ok()).unwrap_or(u64::MAX)
}

/// Returns a member of the metadata; none if it has another type.
fn member<T: for<'de> Deserialize<'de>>(metadata: Option<&Value>, key: &str) -> Option<T> {
    metadata?.get(key).and_then(|node| T::deserialize(node).ok())
}

/// Every reply has a usage, even if all of it is unknown.
fn usage(role: Role, metadata: Option<&Value>) -> Option<EntryUsage> {
    let tokens: Option<TokenUsage> = member(metadata, "token_usage");
    let cost: Option<Cost> = member(metadata, "cost");
    if tokens.is_none() && cost.is_none() && role != Role::Assistant {
        return None;
    }
    let tokens = tokens.unwrap_or_default();
    let cost = cost.filter(|cost| cost.currency == Currency::Usd).map(|cost| cost.amount);
    Some(EntryUsage {
        input_tokens: tokens.prompt_tokens,
        cached_input_tokens: tokens.cached_input_tokens,
        output_tokens: tokens.completion_tokens,
        reasoning_tokens: tokens.reasoning_tokens,
        cost_usd: cost.or_else(|| tokens.total_cost_usd.and_then(Amount::new)),
    })
}

fn flagged(safety: SafetyCheck) -> Vec<String> {
    if safety.categories.is_empty() { vec!["flagged".to_owned()] } else { safety.categories }
}
