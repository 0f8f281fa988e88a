//! The messages of a run as a timeline: their times, tokens and costs (appendix A.6).
//!
//! `created_at` is read as the end of a message, and `metadata.latency_ms.total_time` as its duration. Unknown tokens and costs
//! are null, never zero.

mod content;
mod entry;
mod totals;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

pub use self::{
    content::Content,
    entry::{Entry, EntryUsage},
    totals::{Known, Totals},
};
use crate::{Conversation, Role};

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
    /// Creates the timeline of a conversation. Reads no clock: all times are those of the messages.
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

#[cfg(test)]
mod tests;
