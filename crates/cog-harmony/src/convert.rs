//! Converts histories to and from the formats of vendors.
//!
//! Every format is read into [`Conversation`]s and written from them. What only one vendor has is a member of its name in
//! `other`, and is written back for that vendor. What a format cannot hold is a [`Loss`].

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
mod vendor;

use std::fmt;

use cog_json::{Node, ToJson, Writer};
use serde::Serialize;

use self::vendor::Vendor;
use crate::{Conversation, Document, Problem, problem::Problems, read};

/// A format of histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The format of this crate.
    Harmony,
    /// `messages` of OpenAI's Chat Completions.
    OpenAiChat,
    /// `input` of OpenAI's Responses.
    OpenAiResponses,
    /// `messages` and `system` of Anthropic's Messages.
    Anthropic,
    /// `contents` and `systemInstruction` of Google's Gemini.
    Gemini,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Format; 5] =
        [Format::Harmony, Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Gemini];

    /// The names of all formats, in the same order.
    pub const NAMES: &'static [&'static str] =
        &["harmony", "openai-chat", "openai-responses", "anthropic", "gemini"];

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).and_then(|index| Self::ALL.get(index).copied())
    }
}

/// A converted history.
#[derive(Debug, Clone)]
pub struct Converted {
    /// The history as compact JSON.
    pub text: String,
    /// What the format cannot hold.
    pub losses: Vec<Loss>,
}

/// Converts a history. Without `from`, its format is detected.
///
/// # Errors
/// If it is not a history of that format.
pub fn convert(document: &Document, from: Option<Format>, to: Format) -> Result<Converted, Vec<Problem>> {
    let mut account = Account::default();
    let from = from.unwrap_or_else(|| detect(document.node()));
    let conversation = read_format(document, from, &mut account)?;
    let text = write_format(&conversation, to, &mut account);
    Ok(Converted { text, losses: account.finish() })
}

fn read_format(
    document: &Document,
    from: Format,
    account: &mut Account,
) -> Result<Conversation, Vec<Problem>> {
    let mut problems = Problems::default();
    let node = document.node();
    let conversation = match from {
        Format::Harmony | Format::OpenAiChat => {
            let messages = document.messages().map_err(|problem| vec![problem])?;
            account.other_members(node, &["messages"]);
            read::conversation(messages, &mut problems)
        }
        Format::OpenAiResponses => openai_responses::read(node, &mut problems, account),
        Format::Anthropic => anthropic::read(node, &mut problems, account),
        Format::Gemini => gemini::read(node, &mut problems, account),
    };
    problems.or(conversation)
}

/// Writes a conversation in a format, and returns it with what the format cannot hold.
pub fn write_as(conversation: &Conversation, to: Format) -> Converted {
    let mut account = Account::default();
    let text = write_format(conversation, to, &mut account);
    Converted { text, losses: account.finish() }
}

fn write_format(conversation: &Conversation, to: Format, account: &mut Account) -> String {
    let vendor: &Vendor = match to {
        Format::Harmony => return conversation.to_json(),
        Format::OpenAiChat => &openai_chat::VENDOR,
        Format::OpenAiResponses => &openai_responses::VENDOR,
        Format::Anthropic => &anthropic::VENDOR,
        Format::Gemini => &gemini::VENDOR,
    };
    vendor.account(conversation, account);
    let mut text = String::new();
    (vendor.write)(conversation, &mut Writer::compact(&mut text), account);
    text
}

/// Returns the format of a document, by the members that only one of them has. A history that OpenAI Chat could have sent is
/// read as Harmony, which is the same.
fn detect(node: Node<'_>) -> Format {
    let has = |key: &str| node.get(key).is_some();
    if has("contents") || has("systemInstruction") || has("system_instruction") {
        return Format::Gemini;
    }
    if has("input") || has("output") || has("instructions") {
        return Format::OpenAiResponses;
    }
    if has("system") {
        return Format::Anthropic;
    }
    node.get("messages").unwrap_or(node).elements().find_map(detect_message).unwrap_or(Format::Harmony)
}

fn detect_message(message: Node<'_>) -> Option<Format> {
    if message.get("parts").is_some() {
        return Some(Format::Gemini);
    }
    if message.get("type").is_some() {
        return Some(Format::OpenAiResponses);
    }
    let mut kinds = message.get("content")?.elements().filter_map(|block| block.get("type")?.as_str());
    kinds.find_map(|kind| match kind {
        "input_text" | "output_text" | "input_image" | "input_file" => Some(Format::OpenAiResponses),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image" | "document" => {
            Some(Format::Anthropic)
        }
        _ => None,
    })
}

// The account of a conversion: what the target cannot hold.

/// Something that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The path in the history, as this crate writes it.
    pub path: String,
    /// What is lost or changed.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The maximum number of losses that are listed.
const MAX_LOSSES: usize = 1000;

/// The losses so far. The list is bounded; the others are counted.
#[derive(Default)]
struct Account {
    losses: Vec<Loss>,
    more: usize,
}

impl Account {
    fn add(&mut self, path: &dyn fmt::Display, what: impl Into<String>, why: impl Into<String>) {
        match self.losses.len() < MAX_LOSSES {
            true => self.losses.push(Loss { path: path.to_string(), what: what.into(), why: why.into() }),
            false => self.more += 1,
        }
    }

    /// Lists the members of a document beside its messages: a conversion keeps messages only.
    fn other_members(&mut self, document: Node<'_>, known: &[&str]) {
        for (key, _) in document.members().filter(|(key, _)| !known.contains(key)) {
            self.add(&key, "the member", "it is not part of the messages");
        }
    }

    /// Returns the losses, with a last one for those that are not listed.
    fn finish(mut self) -> Vec<Loss> {
        if self.more > 0 {
            let what = format!("{} more", self.more);
            self.losses.push(Loss { path: String::new(), what, why: "the list is limited".to_owned() });
        }
        self.losses
    }
}

#[cfg(test)]
mod tests;
