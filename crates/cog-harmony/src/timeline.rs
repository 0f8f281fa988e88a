//! The messages of a run as a timeline: their times, tokens and costs (appendix A.6).
//!
//! `created_at` is read as the end of a message, and `metadata.latency_ms.total_time` as its duration. Unknown tokens and costs
//! are null, never zero.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use cog_json::Value;
use cog_spec::{Amount, Cost, Currency};
use serde::{Deserialize, Serialize};

use crate::{
    Conversation, Latency, Message, NativePart, Part, Role, SafetyCheck, TokenUsage, ToolCall,
    media_text::media_text,
};

/// The messages of a run with their times, tokens and costs, and the totals. As JSON it is `{messages, totals}`.
///
/// ```
/// use cog_harmony::{Conversation, Message, timeline::Timeline};
///
/// let conversation = Conversation::new([Message::user("Why?"), Message::assistant("Because.")]);
/// let timeline = Timeline::new(&conversation);
/// assert!(timeline.messages[1].is_answer);
/// assert_eq!((timeline.totals.replies, timeline.totals.cost_usd), (1, None));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline<'a> {
    /// An entry for each message.
    pub messages: Vec<Entry<'a>>,
    /// The totals.
    pub totals: Totals<'a>,
}

impl<'a> Timeline<'a> {
    /// Creates the timeline of a conversation. Reads no clock: all times come from the messages.
    pub fn new(conversation: &'a Conversation) -> Self {
        let links = Links::new(conversation);
        let mut messages: Vec<Entry<'a>> = conversation
            .messages()
            .iter()
            .enumerate()
            .map(|(index, message)| Entry::new(index, message, &links))
            .collect();
        set_starts(&mut messages);
        if let Some(last) = messages.last_mut() {
            last.is_answer = last.role == Role::Assistant && !last.has_calls();
        }
        let totals = Totals::new(&messages);
        Self { messages, totals }
    }
}

/// Which results belong to which calls.
struct Links<'a> {
    /// The name of each called tool, by the id of the call.
    names: HashMap<&'a str, &'a str>,
    /// The ids of the calls that have a result.
    results: HashSet<&'a str>,
}

impl<'a> Links<'a> {
    fn new(conversation: &'a Conversation) -> Self {
        let messages = conversation.messages().iter();
        let calls = messages.clone().flat_map(|message| &message.tool_calls);
        Self {
            names: calls.map(|call| (call.id.as_str(), call.name.as_str())).collect(),
            results: messages.filter_map(|message| message.tool_call_id.as_deref()).collect(),
        }
    }
}

/// What a message contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content<'a> {
    /// Text.
    Text {
        /// The text.
        text: &'a str,
    },
    /// The text with which a model refuses.
    Refusal {
        /// The text.
        text: &'a str,
    },
    /// An image, audio or a file, without its bytes.
    Media {
        /// `image`, `audio` or `file`.
        kind: &'static str,
        /// Its media type, name or URL: `image/gif, 1x1`.
        description: String,
    },
    /// A part that only one provider reads.
    Native {
        /// The name of the provider.
        provider: &'a str,
    },
    /// A tool call.
    ToolCall {
        /// The id of the call.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The arguments, JSON as text.
        arguments: &'a str,
        /// Whether a message contains the result.
        has_result: bool,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        call_id: &'a str,
        /// The name of the tool; null if neither the message nor a call has it.
        name: Option<&'a str>,
        /// `success`, `error`, `halted`, or another word; null if the result is not JSON with a status.
        status: Option<String>,
        /// The result.
        text: &'a str,
    },
}

/// Returns the content of a message, its calls last.
fn content<'a>(message: &'a Message, links: &Links<'a>) -> Vec<Content<'a>> {
    let parts = message.content.iter().map(part);
    let calls = message.tool_calls.iter().map(|call| call_of(call, links));
    let mut content: Vec<Content<'a>> = parts.chain(calls).collect();
    if message.role == Role::Tool {
        set_result(&mut content, message, links);
    }
    content
}

fn part(part: &Part) -> Content<'_> {
    match part {
        Part::Text(text) => Content::Text { text: &text.text },
        Part::Refusal(refusal) => Content::Refusal { text: &refusal.refusal },
        Part::Native(NativePart { provider, .. }) => Content::Native { provider },
        Part::Image(_) | Part::Audio(_) | Part::File(_) | Part::FileReference(_) => {
            let (kind, description) = media_text(part).unwrap_or_default();
            Content::Media { kind, description }
        }
    }
}

fn call_of<'a>(call: &'a ToolCall, links: &Links<'a>) -> Content<'a> {
    let ToolCall { id, name, arguments, .. } = call;
    Content::ToolCall { id, name, arguments, has_result: links.results.contains(id.as_str()) }
}

/// Turns the first text of a tool message into the result; without a text, the result is empty.
fn set_result<'a>(content: &mut Vec<Content<'a>>, message: &'a Message, links: &Links<'a>) {
    let text = content.iter().enumerate().find_map(|(at, item)| match item {
        Content::Text { text } => Some((at, *text)),
        _ => None,
    });
    let call_id = message.tool_call_id.as_deref().unwrap_or_default();
    let name = message.name.as_deref().or_else(|| links.names.get(call_id).copied());
    let (at, text) = match text {
        Some((at, text)) => {
            content.remove(at);
            (at, text)
        }
        None => (0, ""),
    };
    content.insert(at, Content::ToolResult { call_id, name, status: status(text), text });
}

/// Returns `status` of a result in the form of docs/tools.md.
fn status(text: &str) -> Option<String> {
    let result = Value::parse(text).ok()?;
    result.get_str("status").map(str::to_owned)
}

/// The totals of a timeline. A sum is null if one of its terms is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Totals<'a> {
    /// The number of messages.
    pub messages: usize,
    /// The number of replies of models.
    pub replies: usize,
    /// The number of tool calls.
    pub tool_calls: usize,
    /// The number of tool calls without a result.
    pub calls_without_result: usize,
    /// The number of results of each status; `unknown` for results without one.
    pub results: BTreeMap<String, usize>,
    /// The models that replied.
    pub models: BTreeSet<&'a str>,
    /// The time from the first start to the last end, in milliseconds; null if no message has a time.
    pub duration_ms: Option<u64>,
    /// The sum of the durations of replies.
    pub model_ms: u64,
    /// The sum of the durations of tools.
    pub tool_ms: u64,
    /// The tokens of the input, including cached ones.
    pub input_tokens: Option<u64>,
    /// The tokens of the output, including reasoning.
    pub output_tokens: Option<u64>,
    /// The cost in US dollars.
    pub cost_usd: Option<Amount>,
    /// The sums of the known terms.
    pub known: Known,
    /// The number of messages whose tokens are unknown.
    pub without_tokens: usize,
    /// The number of messages whose cost is unknown.
    pub without_cost: usize,
}

/// The sums of the tokens and costs that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Known {
    /// The tokens of the input, including cached ones.
    pub input_tokens: u64,
    /// The tokens of the input that were read from the provider's cache.
    pub cached_input_tokens: u64,
    /// The tokens of the output, including reasoning.
    pub output_tokens: u64,
    /// The tokens of the output that were used for reasoning.
    pub reasoning_tokens: u64,
    /// The cost in US dollars.
    pub cost_usd: Amount,
}

impl<'a> Totals<'a> {
    fn new(entries: &[Entry<'a>]) -> Self {
        let mut totals = Self { messages: entries.len(), ..Self::default() };
        for entry in entries {
            totals.add(entry);
        }
        let Known { input_tokens, output_tokens, cost_usd, .. } = totals.known;
        let has_usage = entries.iter().any(|entry| entry.usage.is_some());
        let has_tokens = has_usage && totals.without_tokens == 0;
        totals.input_tokens = has_tokens.then_some(input_tokens);
        totals.output_tokens = has_tokens.then_some(output_tokens);
        totals.cost_usd = (has_usage && totals.without_cost == 0).then_some(cost_usd);
        totals
    }

    fn add(&mut self, entry: &Entry<'a>) {
        let duration = entry.duration_ms.unwrap_or_default();
        match entry.role {
            Role::Assistant => {
                self.replies += 1;
                self.model_ms = self.model_ms.saturating_add(duration);
            }
            Role::Tool => self.tool_ms = self.tool_ms.saturating_add(duration),
            Role::System | Role::User => {}
        }
        self.duration_ms = self.duration_ms.max(entry.end_ms());
        self.models.extend(entry.model);
        entry.content.iter().for_each(|content| self.add_content(content));
        if let Some(usage) = &entry.usage {
            self.add_usage(usage);
        }
    }

    fn add_content(&mut self, content: &Content<'_>) {
        match content {
            Content::ToolCall { has_result, .. } => {
                self.tool_calls += 1;
                self.calls_without_result += usize::from(!has_result);
            }
            Content::ToolResult { status, .. } => {
                let status = status.as_deref().unwrap_or("unknown");
                *self.results.entry(status.to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn add_usage(&mut self, usage: &EntryUsage) {
        self.without_tokens += usize::from(usage.input_tokens.is_none() || usage.output_tokens.is_none());
        self.without_cost += usize::from(usage.cost_usd.is_none());
        self.known.add(usage);
    }
}

impl Known {
    fn add(&mut self, usage: &EntryUsage) {
        let pairs = [
            (&mut self.input_tokens, usage.input_tokens),
            (&mut self.cached_input_tokens, usage.cached_input_tokens),
            (&mut self.output_tokens, usage.output_tokens),
            (&mut self.reasoning_tokens, usage.reasoning_tokens),
        ];
        for (sum, tokens) in pairs {
            *sum = sum.saturating_add(tokens.unwrap_or_default());
        }
        self.cost_usd = self.cost_usd.plus(usage.cost_usd.unwrap_or_default());
    }
}

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
    fn new(index: usize, message: &'a Message, links: &Links<'a>) -> Self {
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

    fn has_calls(&self) -> bool {
        self.content.iter().any(|content| matches!(content, Content::ToolCall { .. }))
    }
}

/// Sets the start of each message from the first one. Times may go backwards.
fn set_starts(entries: &mut [Entry<'_>]) {
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

#[cfg(test)]
mod tests;
