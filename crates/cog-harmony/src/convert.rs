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
    let mut report = LossReport::default();
    let from = from.unwrap_or_else(|| detect(document.node()));
    let conversation = read_format(document, from, &mut report)?;
    let text = write_format(&conversation, to, &mut report);
    Ok(Converted { text, losses: report.finish() })
}

fn read_format(
    document: &Document,
    from: Format,
    report: &mut LossReport,
) -> Result<Conversation, Vec<Problem>> {
    let mut problems = Problems::default();
    let node = document.node();
    let conversation = match from {
        Format::Harmony | Format::OpenAiChat => {
            let messages = document.messages().map_err(|problem| vec![problem])?;
            report.other_members(node, &["messages"]);
            read::conversation(messages, &mut problems)
        }
        Format::OpenAiResponses => openai_responses::read(node, &mut problems, report),
        Format::Anthropic => anthropic::read(node, &mut problems, report),
        Format::Gemini => gemini::read(node, &mut problems, report),
    };
    problems.or(conversation)
}

/// Writes a conversation in a format, and returns it with what the format cannot hold.
pub fn write_as(conversation: &Conversation, to: Format) -> Converted {
    let mut report = LossReport::default();
    let text = write_format(conversation, to, &mut report);
    Converted { text, losses: report.finish() }
}

fn write_format(conversation: &Conversation, to: Format, report: &mut LossReport) -> String {
    let vendor: &Vendor = match to {
        Format::Harmony => return conversation.to_json(),
        Format::OpenAiChat => &openai_chat::VENDOR,
        Format::OpenAiResponses => &openai_responses::VENDOR,
        Format::Anthropic => &anthropic::VENDOR,
        Format::Gemini => &gemini::VENDOR,
    };
    vendor.report(conversation, report);
    let mut text = String::new();
    (vendor.write)(conversation, &mut Writer::compact(&mut text), report);
    text
}

/// Returns the format of a document, by the members that only one of them has. A history that OpenAI Chat could have sent is
/// read as Harmony, which is the same.
fn detect(node: Node<'_>) -> Format {
    let members = [
        ("contents", Format::Gemini),
        ("systemInstruction", Format::Gemini),
        ("system_instruction", Format::Gemini),
        ("input", Format::OpenAiResponses),
        ("output", Format::OpenAiResponses),
        ("instructions", Format::OpenAiResponses),
        ("system", Format::Anthropic),
    ];
    if let Some((_, format)) = members.into_iter().find(|(key, _)| node.get(key).is_some()) {
        return format;
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
    let mut kinds = message.get("content")?.elements().filter_map(|block| block.get_str("type"));
    kinds.find_map(|kind| match kind {
        "input_text" | "output_text" | "input_image" | "input_file" => Some(Format::OpenAiResponses),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image" | "document" => {
            Some(Format::Anthropic)
        }
        _ => None,
    })
}

// The report of a conversion: what the target cannot hold.

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
struct LossReport {
    losses: Vec<Loss>,
    more: usize,
}

impl LossReport {
    fn add(&mut self, path: &dyn fmt::Display, what: impl Into<String>, why: impl Into<String>) {
        match self.losses.len() < MAX_LOSSES {
            true => self.losses.push(Loss { path: path.to_string(), what: what.into(), why: why.into() }),
            false => self.more += 1,
        }
    }

    /// Lists the members of a document other than its messages: a conversion keeps only the messages.
    fn other_members(&mut self, document: Node<'_>, known: &[&str]) {
        for (key, _) in document.members().filter(|(key, _)| !known.contains(key)) {
            self.add(&key, "the member", "it is not part of the messages");
        }
    }

    /// Returns the losses. If the list is not complete, the last entry says so.
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
