//! Trims a conversation to a number of tokens (appendix A.9).

mod marker;
mod plan;

use std::fmt;

use self::plan::Plan;
use crate::{Conversation, Message, Part, TokenCounter};

/// A conversation within its limit, and what was removed from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trimmed {
    /// The conversation.
    pub conversation: Conversation,
    /// Its tokens.
    pub tokens: u64,
    /// The tokens before.
    pub tokens_before: u64,
    /// What was removed: first the media, then the messages, each from the oldest.
    pub removed: Vec<Removed>,
}

/// A part or a message that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The path in the conversation before: `messages[3]`, `messages[3].content[1]`.
    pub path: String,
    /// The type of the part, or the role of the message.
    pub kind: &'static str,
    /// The tokens that it had.
    pub tokens: u64,
    /// The text that replaces the part; none for a message.
    pub marker: Option<String>,
}

/// The messages that trimming never removes exceed the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimError {
    /// The limit.
    pub max_tokens: u64,
    /// The minimum of tokens that is left: those below, and the tokens that frame the reply.
    pub required: u64,
    /// The tokens of the system messages.
    pub system: u64,
    /// The tokens of the last message of the user.
    pub last_user: u64,
    /// The tokens of the summaries, without their media.
    pub summaries: u64,
}

impl fmt::Display for TrimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max_tokens, required, system, last_user, summaries } = self;
        write!(
            f,
            "cannot trim to {max_tokens} tokens: {required} are required, {system} of them for system messages, \
             {last_user} for the last user message and {summaries} for summaries"
        )
    }
}

impl std::error::Error for TrimError {}

/// Returns whether a message is a summary of earlier messages: its `metadata.summary` is true, or its `name` is `summary`.
pub fn is_summary(message: &Message) -> bool {
    let is_marked = message.metadata.as_ref().and_then(|metadata| metadata.get("summary")?.as_bool());
    is_marked == Some(true) || message.name.as_deref() == Some("summary")
}

/// Removes the oldest media and messages until at most `max_tokens` tokens are left, as the counter counts them.
///
/// 1. Images are replaced by a text about them, the oldest first; then audio and files.
/// 2. Messages are removed, the oldest first. A message with tool calls and their results are one unit. A reply is removed with
///    its question.
///
/// System messages, the last message of the user, and the text of summaries ([`is_summary`]) stay. The others keep their order.
///
/// # Errors
/// The messages that stay exceed the limit.
pub fn trim_messages(
    history: Conversation,
    max_tokens: u64,
    counter: &TokenCounter,
) -> Result<Trimmed, TrimError> {
    let mut plan = Plan::new(&history, counter);
    let tokens_before = plan.tokens;
    plan.replace_media(max_tokens);
    plan.remove_units(max_tokens);
    if plan.tokens > max_tokens {
        return Err(plan.error(max_tokens));
    }
    let (tokens, removed) = (plan.tokens, plan.removed());
    let (markers, is_removed) = plan.into_changes();
    let mut messages = history.0;
    for (message, part, marker) in markers {
        let parts = messages.get_mut(message).map(|message| &mut message.content);
        if let Some(found) = parts.and_then(|parts| parts.get_mut(part)) {
            *found = Part::text(marker);
        }
    }
    let stays = messages.into_iter().zip(is_removed).filter(|(_, is_removed)| !is_removed);
    let conversation = Conversation(stays.map(|(message, _)| message).collect());
    Ok(Trimmed { conversation, tokens, tokens_before, removed })
}
