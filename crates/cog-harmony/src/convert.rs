//! Converts histories to and from the formats of vendors.
//!
//! Every format is read into [`Conversation`]s and written from them. What only one vendor has is a member of its name in
//! `other`, and is written back for that vendor. What a format cannot hold is a [`Loss`].

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use std::fmt;

use cog_json::{Node, ToJson, Value, Writer};
use serde::Serialize;

use crate::{
    Conversation, Detail, Document, FileReferencePart, FileSource, ImagePart, Message, NativePart, Part,
    Problem, Reasoning, Role, ToolCall,
    other::{is_nothing, member},
    problem::{Path, Problems},
    read,
};

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
    let vendor: &'static Vendor = match to {
        Format::Harmony => return conversation.to_json(),
        Format::OpenAiChat => &openai_chat::VENDOR,
        Format::OpenAiResponses => &openai_responses::VENDOR,
        Format::Anthropic => &anthropic::VENDOR,
        Format::Gemini => &gemini::VENDOR,
    };
    vendor.report(conversation, report);
    let messages = conversation.messages().iter().enumerate();
    let messages: Vec<Placed<'_>> = messages
        .map(|(index, message)| Placed { index, message })
        .filter(|placed| vendor.has_content(placed.message))
        .collect();
    let mut text = String::new();
    (vendor.write)(&messages, &mut Writer::compact(&mut text), report);
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
        let others = document.members().filter(|(key, value)| !known.contains(key) && !is_nothing(*value));
        for (key, _) in others {
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

// What the formats of vendors share: the fields that they hold, and the members that only one of them has.

/// A format of a vendor.
struct Vendor {
    /// The name in a report, `Anthropic`.
    title: &'static str,
    /// The provider of reasoning and native parts, as in the settings: `openai`.
    provider: &'static str,
    /// The member of `other` with what only this format has.
    namespace: &'static str,
    /// The fields that the format holds, of messages, parts and calls.
    holds: &'static [&'static str],
    /// The levels of detail of an image that the format holds.
    levels: &'static [Detail],
    /// Whether a message of this role may contain a part.
    takes: fn(Role, &Part) -> bool,
    /// Writes the messages.
    write: fn(&[Placed<'_>], &mut Writer<'_>, &mut LossReport),
}

/// A message with its index in the conversation.
struct Placed<'a> {
    index: usize,
    message: &'a Message,
}

/// The namespaces of all vendors in `other`.
const NAMESPACES: [&str; 4] = ["openai_chat", "openai_responses", "anthropic", "gemini"];

/// What a vendor needs to find its own item again, and nobody else.
const BOOKKEEPING: [&str; 2] = ["id", "status"];

impl Vendor {
    /// Lists what the format cannot hold.
    fn report(&self, conversation: &Conversation, report: &mut LossReport) {
        let root = Path::root("messages");
        for (index, message) in conversation.messages().iter().enumerate() {
            self.report_message(message, &root.index(index), report);
        }
    }

    fn report_message(&self, message: &Message, path: &Path<'_>, report: &mut LossReport) {
        // A vendor's own identifier means nothing to others.
        let from_vendor = NAMESPACES.iter().any(|namespace| member(&message.other, namespace).is_some());
        self.field(path, "id", message.id.is_some() && !from_vendor, report);
        // The name of a result is the name of its call, which stays.
        self.field(path, "name", message.name.is_some() && message.role != Role::Tool, report);
        self.field(path, "created_at", message.created_at.is_some(), report);
        self.field(path, "metadata", message.metadata.is_some(), report);
        let reasoning = message.reasoning.as_ref().filter(|reasoning| reasoning.provider != self.provider);
        if let Some(reasoning) = reasoning {
            let why = format!("only {} reads it", reasoning.provider);
            report.add(&path.key("reasoning"), "the reasoning", why);
        }
        if !self.has_content(message) {
            report.add(path, "the message", format!("{} accepts no empty message", self.title));
        }
        self.unknown(path, &message.other, &[], report);
        let parts = path.key("content");
        for (index, part) in message.content.iter().enumerate() {
            self.report_part(message.role, part, &parts.index(index), report);
        }
        let calls = path.key("tool_calls");
        for (index, call) in message.tool_calls.iter().enumerate() {
            self.report_call(call, &calls.index(index), report);
        }
    }

    fn report_part(&self, role: Role, part: &Part, path: &Path<'_>, report: &mut LossReport) {
        if self.is_empty_text(part) {
            return;
        }
        if !self.keeps(role, part) {
            let why = format!("a {role} message of {} cannot contain it", self.title);
            return report.add(path, format!("the part `{}`", part.kind()), why);
        }
        match part {
            Part::Text(text) => self.field(path, "index", text.index.is_some(), report),
            Part::Image(image) => {
                let inner = path.key("image_url");
                if let Some(detail) = image.detail.filter(|detail| !self.levels.contains(detail)) {
                    report.add(&inner.key("detail"), "`detail`", self.why_not(detail));
                }
                self.field(&inner, "rotation", image.rotation.is_some(), report);
                self.field(path, "video_metadata", image.video.is_some(), report);
            }
            Part::Audio(audio) => {
                self.field(&path.key("input_audio"), "sample_rate", audio.sample_rate.is_some(), report);
            }
            Part::File(file) => self.field(&path.key("file"), "filename", file.filename.is_some(), report),
            Part::FileReference(file) => {
                self.field(&path.key("file"), "filename", file.filename.is_some(), report);
            }
            Part::Refusal(_) if self.provider != "openai" => {
                report.add(path, "the refusal", format!("for {}, it is text", self.title));
            }
            Part::Refusal(_) | Part::Native(_) => {}
        }
        self.unknown(path, part.other(), &["image_url", "video_metadata", "input_audio", "file"], report);
    }

    fn why_not(&self, detail: Detail) -> String {
        match detail {
            Detail::Auto => format!("{} does not distinguish `auto` from no level", self.title),
            Detail::Low | Detail::High => format!("{} has no such field", self.title),
        }
    }

    fn report_call(&self, call: &ToolCall, path: &Path<'_>, report: &mut LossReport) {
        self.field(path, "signature", call.signature.is_some(), report);
        self.unknown(path, &call.other, &["function"], report);
    }

    fn field(&self, path: &Path<'_>, field: &str, is_set: bool, report: &mut LossReport) {
        if is_set && !self.holds.contains(&field) {
            report.add(&path.key(field), format!("`{field}`"), format!("{} has no such field", self.title));
        }
    }

    /// Lists the members that this format does not hold, also inside the objects `inner`.
    fn unknown(&self, path: &Path<'_>, other: &Option<Value>, inner: &[&str], report: &mut LossReport) {
        for (key, value) in other.iter().flat_map(Value::members).filter(|(key, _)| *key != self.namespace) {
            if is_nothing(value) {
                continue;
            }
            if NAMESPACES.contains(&key) {
                let members = value.members().filter(|(key, _)| !BOOKKEEPING.contains(key));
                for (key, _) in members {
                    report.add(
                        &path.key(key),
                        format!("`{key}`"),
                        format!("{} has no such field", self.title),
                    );
                }
            } else if inner.contains(&key) {
                let path = path.key(key);
                value.members().for_each(|(key, _)| self.field(&path, key, true, report));
            } else {
                self.field(path, key, true, report);
            }
        }
    }

    /// Returns whether a message contains the part in this format.
    fn keeps(&self, role: Role, part: &Part) -> bool {
        match part {
            Part::Native(native) => native.provider == self.provider && role != Role::Tool,
            Part::Image(ImagePart { url, .. }) if !self.reads(url) => false,
            Part::FileReference(FileReferencePart { source: FileSource::Url(url), .. })
                if !self.reads(url) =>
            {
                false
            }
            Part::FileReference(FileReferencePart { source: FileSource::Id(id), .. })
                if !self.has_file(id) =>
            {
                false
            }
            part => (self.takes)(role, part),
        }
    }

    /// Whether the vendor reads a URL. Files of Google are read by Google alone.
    fn reads(&self, url: &str) -> bool {
        const GOOGLE: [&str; 2] = ["https://generativelanguage.googleapis.com/", "gs://"];
        self.provider == "gemini" || !GOOGLE.iter().any(|prefix| url.starts_with(prefix))
    }

    /// Whether the identifier of a file may be the vendor's: OpenAI's begin with `file-`, and Anthropic's with `file_`.
    fn has_file(&self, id: &str) -> bool {
        match self.provider {
            "anthropic" => !id.starts_with("file-"),
            _ => !id.starts_with("file_"),
        }
    }

    /// Returns whether a message has anything to write. The result of a call may be empty.
    fn has_content(&self, message: &Message) -> bool {
        message.role == Role::Tool
            || !message.tool_calls.is_empty()
            || !self.reasoning(message).is_empty()
            || self.extra(&message.other).any(|(key, _)| !BOOKKEEPING.contains(&key))
            || self.parts(message).next().is_some()
            || member(&message.other, "audio").is_some_and(|_| self.holds.contains(&"audio"))
    }

    /// Returns the parts of a message that the format holds.
    fn parts<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = &'a Part> {
        // Only OpenAI accepts an empty text; next to calls, it says nothing.
        let may_be_empty = self.provider == "openai" && message.tool_calls.is_empty();
        let parts = message.content.iter().filter(|part| self.keeps(message.role, part));
        parts.filter(move |part| may_be_empty || !self.is_empty_text(part))
    }

    fn is_empty_text(&self, part: &Part) -> bool {
        part.as_text() == Some("") && self.extra(part.other()).next().is_none()
    }

    /// Returns the text of a message that has only one text part, without further members.
    fn only_text<'a>(&self, message: &'a Message) -> Option<&'a str> {
        match message.content.as_slice() {
            [Part::Text(text)] if self.extra(&text.other).next().is_none() => Some(&text.text),
            _ => None,
        }
    }

    /// Returns the items of the reasoning, if they are this vendor's.
    fn reasoning<'a>(&self, message: &'a Message) -> &'a [Value] {
        let reasoning = message.reasoning.as_ref().filter(|reasoning| reasoning.provider == self.provider);
        reasoning.map(|reasoning| reasoning.items.as_slice()).unwrap_or_default()
    }

    /// Returns the items of a message's reasoning, in this vendor's form, to add one.
    fn reasoning_mut<'a>(&self, message: &'a mut Message) -> &'a mut Vec<Value> {
        let reasoning = message
            .reasoning
            .get_or_insert_with(|| Reasoning { provider: self.provider.to_owned(), items: Vec::new() });
        &mut reasoning.items
    }

    /// Returns a part in this vendor's form, for what Harmony has no part for.
    fn native(&self, node: Node<'_>) -> Part {
        Part::Native(NativePart { provider: self.provider.to_owned(), item: node.to_value(), other: None })
    }

    /// Returns what only this format has.
    fn extra<'a>(&self, other: &'a Option<Value>) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        member(other, self.namespace).into_iter().flat_map(Node::members)
    }

    /// Writes what only this format has.
    fn write_extra(&self, w: &mut Writer<'_>, other: &Option<Value>) {
        self.extra(other).for_each(|(key, value)| w.key(key).node(value));
    }

    /// Reads what only this format has: the members that are not `known`.
    fn read_extra(&self, node: Node<'_>, known: &[&str]) -> Option<Value> {
        let mut unknown = node.members().filter(|(key, value)| !known.contains(key) && !is_nothing(*value));
        let first = unknown.next()?;
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.key(self.namespace).object(|w| {
                std::iter::once(first).chain(unknown).for_each(|(key, value)| w.key(key).node(value));
            });
        });
        Value::parse(&text).ok()
    }
}

/// Lists the arguments of a call of this message, which are not an object.
fn report_arguments(message: &Message, call: &ToolCall, path: &Path<'_>, report: &mut LossReport) {
    let index = message.tool_calls.iter().position(|one| std::ptr::eq(one, call)).unwrap_or_default();
    let why = "they are not a JSON object, and become its member `invalid_arguments`";
    let calls = path.key("tool_calls");
    report.add(&calls.index(index).key("function").key("arguments"), "the arguments", why);
}

/// Whether a message has no content yet.
fn is_empty(message: &Message) -> bool {
    message.content.is_empty() && message.tool_calls.is_empty() && message.reasoning.is_none()
}

/// Ends the current message, and begins another one of the same role.
fn flush(current: &mut Message, messages: &mut Vec<Message>) {
    if !is_empty(current) {
        let next = Message::new(current.role, Vec::new());
        messages.push(std::mem::replace(current, next));
    }
}

/// Returns a member that is a string.
fn text(node: Node<'_>, key: &str) -> Option<String> {
    node.get_str(key).map(str::to_owned)
}

/// Reads arguments that are an object.
fn read_arguments(node: Option<Node<'_>>) -> String {
    node.filter(|node| node.is_object()).map_or_else(|| "{}".to_owned(), |node| node.to_string())
}

/// Returns the name of the function that each call of a conversation calls.
fn name_results(conversation: &mut Conversation) {
    let mut names = std::collections::HashMap::new();
    for message in &mut conversation.0 {
        for call in &message.tool_calls {
            names.insert(call.id.clone(), call.name.clone());
        }
        if message.role == Role::Tool && message.name.is_none() {
            message.name = message.tool_call_id.as_ref().and_then(|id| names.get(id).cloned());
        }
    }
}

#[cfg(test)]
mod tests;
