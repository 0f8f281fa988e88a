//! What is removed, decided on counts before any message changes.

use std::collections::HashMap;

use super::{Removed, TrimError, is_summary, marker::marker};
use crate::{Conversation, Message, Role, TokenCounter};

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

/// A media part that may be replaced by a text.
struct Media {
    message: usize,
    part: usize,
    kind: &'static str,
    tokens: u64,
    marker: String,
    marker_tokens: u64,
    is_replaced: bool,
}

/// Messages that stay or go together: a message, or one with tool calls and the results of them.
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
            if unit.is_kept {
                is_question_removed &= !is_question;
                continue;
            }
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
    pub(crate) fn removed(&self) -> Vec<Removed> {
        let media = self.media.iter().filter(|media| self.is_replaced(media)).map(|media| Removed {
            path: format!("messages[{}].content[{}]", media.message, media.part),
            kind: media.kind,
            tokens: media.tokens,
            marker: Some(media.marker.clone()),
        });
        let messages = self.messages.iter().enumerate().filter(|(_, message)| message.is_removed);
        let messages = messages.map(|(index, message)| Removed {
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

    /// Returns the texts that replace media, with the indices of message and part, and which messages are removed.
    pub(crate) fn into_changes(self) -> (Vec<(usize, usize, String)>, Vec<bool>) {
        let replaced = self.media.into_iter().filter(|media| media.is_replaced);
        let markers = replaced.map(|media| (media.message, media.part, media.marker));
        (markers.collect(), self.messages.iter().map(|message| message.is_removed).collect())
    }

    pub(crate) fn error(&self, max_tokens: u64) -> TrimError {
        let sum = |keep| {
            let kept = self.messages.iter().filter(|message| message.keep == keep && !message.is_removed);
            kept.map(|message| message.tokens).sum()
        };
        TrimError {
            max_tokens,
            required: self.tokens,
            system: sum(Keep::System),
            last_user: sum(Keep::LastUser),
            summaries: sum(Keep::Summary),
        }
    }
}

fn counted(messages: &[Message], counter: &TokenCounter) -> Vec<Counted> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let keep = |index, message: &Message| match message.role {
        Role::System => Keep::System,
        _ if Some(index) == last_user => Keep::LastUser,
        _ if is_summary(message) => Keep::Summary,
        _ => Keep::No,
    };
    let count = |(index, message)| {
        let tokens = counter.message(message).total;
        Counted {
            role: message.role,
            keep: keep(index, message),
            tokens_before: tokens,
            tokens,
            is_removed: false,
        }
    };
    messages.iter().enumerate().map(count).collect()
}

/// Returns the media that may be replaced: all but those of system messages and of the last message of the user.
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
