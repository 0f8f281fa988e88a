//! The messages of a run as a timeline: their times, tokens and costs (appendix A.6).
//!
//! `created_at` is read as the end of a message, and `metadata.latency_ms.total_time` as its duration. Unknown tokens and costs
//! are null, never zero.

mod content;
mod entry;
mod links;
mod totals;

use serde::Serialize;

use self::links::Links;
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

#[cfg(test)]
mod tests;
