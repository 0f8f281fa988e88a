//! Trims a conversation to a number of tokens (appendix A.9).

use std::{collections::HashMap, fmt};

use crate::{Conversation, Message, Part, Role, TokenCounter, media_text::media_text};

/// A conversation within its limit, and what was removed from it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrimReport {
    /// The conversation.
    pub conversation: Conversation,
    /// Its tokens.
    pub tokens: u64,
    /// The tokens before.
    pub tokens_before: u64,
    /// What was removed: first the media, then the messages, each from the oldest.
    pub removed: Vec<TrimmedItem>,
}

/// A part or a message that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimmedItem {
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
    /// The minimum of tokens that is left: the sum of the numbers below, and the tokens that frame the reply.
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
/// 1. Images are replaced by text that describes them, the oldest first; then audio and files.
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
) -> Result<TrimReport, TrimError> {
    let mut plan = Plan::new(&history, counter);
    let tokens_before = plan.tokens;
    plan.replace_media(max_tokens);
    plan.remove_units(max_tokens);
    if plan.tokens > max_tokens {
        return Err(plan.error(max_tokens));
    }
    let tokens = plan.tokens;
    let removed = plan.removed();
    Ok(TrimReport { conversation: plan.apply(history), tokens, tokens_before, removed })
}

// The text that replaces media.

/// Returns the text that replaces a media part; none for a part that is not one.
pub(crate) fn marker(part: &Part) -> Option<String> {
    media_text(part).map(|(kind, text)| format!("[{kind} removed: {text}]"))
}

// What is removed, decided on counts before any message changes.

/// The type of an image part.
const IMAGE: &str = "image_url";

/// The tokens of a conversation, and what is removed from it so far.
pub(crate) struct Plan {
    /// The tokens that are left.
    pub(crate) tokens: u64,
    messages: Vec<Counted>,
    /// The media that may be replaced: images first, each kind from the oldest.
    media: Vec<Media>,
    units: Vec<Unit>,
}

/// A message and its tokens.
struct Counted {
    role: Role,
    keep: Keep,
    tokens_before: u64,
    tokens: u64,
    is_removed: bool,
}

/// Why a message stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    No,
    System,
    LastUser,
    Summary,
}

/// A media part that may be replaced by text.
struct Media {
    message: usize,
    part: usize,
    kind: &'static str,
    tokens: u64,
    marker: String,
    marker_tokens: u64,
    is_replaced: bool,
}

/// Messages that stay or go together: a message, or one with tool calls and their results.
#[derive(Default)]
struct Unit {
    messages: Vec<usize>,
    is_kept: bool,
}

impl Plan {
    pub(crate) fn new(history: &Conversation, counter: &TokenCounter) -> Self {
        let messages = counted(history.messages(), counter);
        let before = history.messages().iter().map(|message| message.tool_calls.len()).sum();
        Self {
            tokens: counter.reply() + messages.iter().map(|message| message.tokens).sum::<u64>(),
            media: media(history.messages(), &messages, counter),
            units: units(history.messages(), &messages, before),
            messages,
        }
    }

    /// Replaces media until the limit is met. Media that cost no more than their text stay.
    pub(crate) fn replace_media(&mut self, max_tokens: u64) {
        for media in self.media.iter_mut().filter(|media| media.marker_tokens < media.tokens) {
            if self.tokens <= max_tokens {
                return;
            }
            let saved = media.tokens - media.marker_tokens;
            media.is_replaced = true;
            self.tokens -= saved;
            if let Some(message) = self.messages.get_mut(media.message) {
                message.tokens -= saved;
            }
        }
    }

    /// Removes units until the limit is met, and the replies to a question that was removed.
    pub(crate) fn remove_units(&mut self, max_tokens: u64) {
        let mut is_question_removed = false;
        for unit in &self.units {
            let role =
                unit.messages.first().and_then(|first| self.messages.get(*first)).map(|first| first.role);
            let is_question = role == Some(Role::User);
            // A summary between a question and its reply belongs to neither, and changes nothing for the reply.
            if unit.is_kept {
                is_question_removed &= !is_question;
                continue;
            }
            // The limit is met, but the reply to a removed question goes too: alone it would answer another one.
            if self.tokens <= max_tokens && (is_question || !is_question_removed) {
                return;
            }
            is_question_removed |= is_question;
            for index in &unit.messages {
                let Some(message) = self.messages.get_mut(*index) else { continue };
                message.is_removed = true;
                self.tokens -= message.tokens;
            }
        }
    }

    /// Returns what is removed. Media of removed messages are not listed.
    pub(crate) fn removed(&self) -> Vec<TrimmedItem> {
        let media = self.media.iter().filter(|media| self.is_replaced(media)).map(|media| TrimmedItem {
            path: format!("messages[{}].content[{}]", media.message, media.part),
            kind: media.kind,
            tokens: media.tokens,
            marker: Some(media.marker.clone()),
        });
        let messages = self.messages.iter().enumerate().filter(|(_, message)| message.is_removed);
        let messages = messages.map(|(index, message)| TrimmedItem {
            path: format!("messages[{index}]"),
            kind: message.role.as_str(),
            tokens: message.tokens_before,
            marker: None,
        });
        media.chain(messages).collect()
    }

    fn is_replaced(&self, media: &Media) -> bool {
        media.is_replaced && self.messages.get(media.message).is_some_and(|message| !message.is_removed)
    }

    /// Replaces media and removes messages, as planned.
    pub(crate) fn apply(self, history: Conversation) -> Conversation {
        let mut messages = history.0;
        for media in self.media.into_iter().filter(|media| media.is_replaced) {
            let parts = messages.get_mut(media.message).map(|message| &mut message.content);
            if let Some(part) = parts.and_then(|parts| parts.get_mut(media.part)) {
                *part = Part::text(media.marker);
            }
        }
        let mut counted = self.messages.into_iter();
        messages.retain(|_| counted.next().is_some_and(|message| !message.is_removed));
        Conversation(messages)
    }

    pub(crate) fn error(&self, max_tokens: u64) -> TrimError {
        TrimError {
            max_tokens,
            required: self.tokens,
            system: self.kept_tokens(Keep::System),
            last_user: self.kept_tokens(Keep::LastUser),
            summaries: self.kept_tokens(Keep::Summary),
        }
    }

    fn kept_tokens(&self, keep: Keep) -> u64 {
        let kept = self.messages.iter().filter(|message| message.keep == keep && !message.is_removed);
        kept.map(|message| message.tokens).sum()
    }
}

fn counted(messages: &[Message], counter: &TokenCounter) -> Vec<Counted> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let counted = messages.iter().enumerate().map(|(index, message)| {
        let keep = match message.role {
            Role::System => Keep::System,
            _ if Some(index) == last_user => Keep::LastUser,
            _ if is_summary(message) => Keep::Summary,
            _ => Keep::No,
        };
        let tokens = counter.message(message).total;
        Counted { role: message.role, keep, tokens_before: tokens, tokens, is_removed: false }
    });
    counted.collect()
}

/// Returns the media that may be replaced: not in system messages, and not in the last message of the user.
fn media(messages: &[Message], counted: &[Counted], counter: &TokenCounter) -> Vec<Media> {
    let mut all = Vec::new();
    for ((index, message), counted) in messages.iter().enumerate().zip(counted) {
        if matches!(counted.keep, Keep::System | Keep::LastUser) {
            continue;
        }
        let parts = message.content.iter().enumerate();
        all.extend(parts.filter_map(|(part_index, part)| {
            let marker = marker(part)?;
            Some(Media {
                message: index,
                part: part_index,
                kind: part.kind(),
                tokens: counter.part(part).tokens,
                marker_tokens: counter.text(&marker),
                marker,
                is_replaced: false,
            })
        }));
    }
    // Images come first; the order within each group stays.
    all.sort_by_key(|media| media.kind != IMAGE);
    all
}

/// Groups messages: the results of tool calls belong to the message with the calls, wherever they are. An id that is used again
/// belongs to the latest message with it.
fn units(messages: &[Message], counted: &[Counted], calls: usize) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(messages.len());
    let mut callers: HashMap<&str, usize> = HashMap::with_capacity(calls);
    for ((index, message), counted) in messages.iter().enumerate().zip(counted) {
        let caller = message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool);
        let caller = caller.and_then(|id| callers.get(id)).copied().unwrap_or(units.len());
        if caller == units.len() {
            units.push(Unit::default());
            callers.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), caller)));
        }
        if let Some(unit) = units.get_mut(caller) {
            unit.messages.push(index);
            unit.is_kept |= counted.keep != Keep::No;
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_describe_the_part() {
        let image = Part::image_at("https://x.test/a.png");
        assert_eq!(marker(&image).as_deref(), Some("[image removed: https://x.test/a.png]"));
        assert_eq!(marker(&Part::text("a")), None);
    }
}
