//! The messages of a run as a timeline: their times, tokens and costs (appendix A.6).
//!
//! `created_at` is read as the end of a message, and `metadata.latency_ms.total_time` as its duration. Unknown tokens and costs
//! are null, never zero.

mod entry;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cog_json::Value;
use cog_spec::Amount;
use serde::Serialize;

pub use self::entry::{Entry, EntryUsage};
use crate::{Conversation, Message, NativePart, Part, Role, ToolCall, media_text::media_text};

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
        entry::set_starts(&mut messages);
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

#[cfg(test)]
mod tests;
