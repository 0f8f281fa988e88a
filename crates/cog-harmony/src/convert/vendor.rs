//! What the formats of vendors share: the fields that they hold, and the members that only one of them has.

use cog_json::{Node, Value, Writer};

use super::LossReport;
use crate::{
    Conversation, Detail, Message, NativePart, Part, Reasoning, Role, ToolCall, other::member, problem::Path,
};

/// A format of a vendor.
pub(super) struct Vendor {
    /// The name in a report, `Anthropic`.
    pub(super) title: &'static str,
    /// The provider of reasoning and native parts, as in the settings: `openai`.
    pub(super) provider: &'static str,
    /// The member of `other` with what only this format has.
    pub(super) namespace: &'static str,
    /// The fields that the format holds, of messages, parts and calls.
    pub(super) holds: &'static [&'static str],
    /// The levels of detail of an image that the format holds.
    pub(super) levels: &'static [Detail],
    /// Whether a message of this role may contain a part.
    pub(super) takes: fn(Role, &Part) -> bool,
    /// Writes the messages.
    pub(super) write: fn(&Conversation, &mut Writer<'_>, &mut LossReport),
}

impl Vendor {
    /// Lists what the format cannot hold.
    pub(super) fn report(&self, conversation: &Conversation, report: &mut LossReport) {
        let root = Path::root("messages");
        for (index, message) in conversation.messages().iter().enumerate() {
            self.report_message(message, &root.index(index), report);
        }
    }

    fn report_message(&self, message: &Message, path: &Path<'_>, report: &mut LossReport) {
        let from_vendor = member(&message.other, self.namespace).is_some();
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
            if inner.contains(&key) {
                let path = path.key(key);
                value.members().for_each(|(key, _)| self.field(&path, key, true, report));
            } else {
                self.field(path, key, true, report);
            }
        }
    }

    /// Returns whether a message contains the part in this format.
    pub(super) fn keeps(&self, role: Role, part: &Part) -> bool {
        match part {
            Part::Native(native) => native.provider == self.provider && role != Role::Tool,
            part => (self.takes)(role, part),
        }
    }

    /// Returns the parts of a message that the format holds.
    pub(super) fn parts<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = &'a Part> {
        message.content.iter().filter(|part| self.keeps(message.role, part))
    }

    /// Returns the text of a message that has only one text part, without further members.
    pub(super) fn only_text<'a>(&self, message: &'a Message) -> Option<&'a str> {
        match message.content.as_slice() {
            [Part::Text(text)] if self.extra(&text.other).next().is_none() => Some(&text.text),
            _ => None,
        }
    }

    /// Returns the items of the reasoning, if they are this vendor's.
    pub(super) fn reasoning<'a>(&self, message: &'a Message) -> &'a [Value] {
        let reasoning = message.reasoning.as_ref().filter(|reasoning| reasoning.provider == self.provider);
        reasoning.map(|reasoning| reasoning.items.as_slice()).unwrap_or_default()
    }

    /// Returns the items of a message's reasoning, in this vendor's form, to add one.
    pub(super) fn reasoning_mut<'a>(&self, message: &'a mut Message) -> &'a mut Vec<Value> {
        let reasoning = message
            .reasoning
            .get_or_insert_with(|| Reasoning { provider: self.provider.to_owned(), items: Vec::new() });
        &mut reasoning.items
    }

    /// Returns a part in this vendor's form, for what Harmony has no part for.
    pub(super) fn native(&self, node: Node<'_>) -> Part {
        Part::Native(NativePart { provider: self.provider.to_owned(), item: node.to_value(), other: None })
    }

    /// Returns what only this format has.
    pub(super) fn extra<'a>(&self, other: &'a Option<Value>) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        member(other, self.namespace).into_iter().flat_map(Node::members)
    }

    /// Writes what only this format has.
    pub(super) fn write_extra(&self, w: &mut Writer<'_>, other: &Option<Value>) {
        self.extra(other).for_each(|(key, value)| w.key(key).node(value));
    }

    /// Reads what only this format has: the members that are not `known`.
    pub(super) fn read_extra(&self, node: Node<'_>, known: &[&str]) -> Option<Value> {
        let mut unknown = node.members().filter(|(key, value)| !known.contains(key) && !value.is_null());
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
pub(super) fn report_arguments(message: &Message, call: &ToolCall, path: &Path<'_>, report: &mut LossReport) {
    let index = message.tool_calls.iter().position(|one| std::ptr::eq(one, call)).unwrap_or_default();
    let why = "they are not a JSON object, and become its member `invalid_arguments`";
    let calls = path.key("tool_calls");
    report.add(&calls.index(index).key("function").key("arguments"), "the arguments", why);
}

/// Whether a message has no content yet.
pub(super) fn is_empty(message: &Message) -> bool {
    message.content.is_empty() && message.tool_calls.is_empty() && message.reasoning.is_none()
}

/// Ends the current message, and begins another one of the same role.
pub(super) fn flush(current: &mut Message, messages: &mut Vec<Message>) {
    if !is_empty(current) {
        let next = Message::new(current.role, Vec::new());
        messages.push(std::mem::replace(current, next));
    }
}

/// Returns a member that is a string.
pub(super) fn text(node: Node<'_>, key: &str) -> Option<String> {
    node.get_str(key).map(str::to_owned)
}

/// Reads arguments that are an object.
pub(super) fn read_arguments(node: Option<Node<'_>>) -> String {
    node.filter(|node| node.is_object()).map_or_else(|| "{}".to_owned(), |node| node.to_string())
}

/// Returns the name of the function that each call of a conversation calls.
pub(super) fn name_results(conversation: &mut Conversation) {
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
