use std::collections::{BTreeMap, BTreeSet};

use cog_spec::Amount;
use serde::Serialize;

use super::{Content, Entry, EntryUsage};
use crate::Role;

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
    pub(super) fn new(entries: &[Entry<'a>]) -> Self {
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
