//! `input` of OpenAI's Responses: a list of items.

use std::collections::HashSet;

use cog_json::{Node, Value, Writer};

use super::{LossReport, Placed, Vendor, name_results, text};
use crate::{
    Conversation, Detail, FilePart, FileReferencePart, FileSource, ImagePart, Message, Part, RefusalPart,
    Role, TextPart, ToolCall,
    other::member,
    problem::{Path, Problems},
    rules::{REQUIRED, TYPE},
    wire::{self, Step, data_url, steps},
};

pub(super) static VENDOR: Vendor = Vendor {
    title: "OpenAI Responses",
    provider: "openai",
    namespace: "openai_responses",
    holds: &["role", "custom", "detail", "filename"],
    levels: &[Detail::Low, Detail::High],
    takes,
    write,
};

fn takes(role: Role, part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Refusal(_) => role == Role::Assistant,
        Part::FileReference(FileReferencePart { media_type: Some(kind), .. })
            if kind.starts_with("video/") || kind.starts_with("audio/") =>
        {
            false
        }
        Part::Image(_) | Part::File(_) | Part::FileReference(_) => matches!(role, Role::User | Role::Tool),
        Part::Audio(_) | Part::Native(_) => false,
    }
}

pub(super) fn read(node: Node<'_>, problems: &mut Problems, report: &mut LossReport) -> Conversation {
    let mut reader = Reader::default();
    report.other_members(node, &["input", "output", "instructions"]);
    reader.messages.extend(node.get_str("instructions").map(Message::system));
    let input = node.get("input").or_else(|| node.get("output")).unwrap_or(node);
    reader.messages.extend(input.as_str().map(Message::user));
    let root = Path::root("input");
    if !input.is_array() && !input.is_string() {
        problems.add(&root, &TYPE, format!("found {}, expected an array of items", input.kind()));
    }
    for (index, item) in input.elements().enumerate() {
        reader.read_item(item, &root.index(index), problems, report);
    }
    reader.flush();
    let mut conversation = Conversation(reader.messages);
    name_results(&mut conversation);
    conversation
}

/// Assembles the items of an assistant's turn into messages.
#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    current: Option<Message>,
}

impl Reader {
    fn flush(&mut self) {
        self.messages.extend(self.current.take());
    }

    fn assistant(&mut self) -> &mut Message {
        self.current.get_or_insert_with(|| Message::new(Role::Assistant, Vec::new()))
    }

    fn read_item(
        &mut self,
        item: Node<'_>,
        path: &Path<'_>,
        problems: &mut Problems,
        report: &mut LossReport,
    ) {
        let kind = item.get_str("type");
        match kind.or_else(|| item.get("role").map(|_| "message")) {
            Some("message") => self.read_message(item, path, problems, report),
            Some("function_call" | CUSTOM_CALL) => self.read_call(item, path, problems),
            Some("function_call_output" | CUSTOM_OUTPUT) => {
                self.flush();
                self.messages.extend(read_output(item, path, problems));
            }
            Some("reasoning") => {
                if self
                    .current
                    .as_ref()
                    .is_some_and(|message| !message.content.is_empty() && message.tool_calls.is_empty())
                {
                    self.flush();
                }
                VENDOR.reasoning_mut(self.assistant()).push(item.to_value());
            }
            Some(_) => self.read_native(item, path, report),
            None => problems.add(&path.key("type"), &REQUIRED, "missing, expected the type of the item"),
        }
    }

    /// An item of a tool that the provider runs, or of a kind that Harmony has no part for.
    fn read_native(&mut self, item: Node<'_>, path: &Path<'_>, report: &mut LossReport) {
        let message = self.assistant();
        if !message.tool_calls.is_empty() {
            report.add(path, "the place of the item", "it was after a call, and is before it");
        }
        message.content.push(VENDOR.native(item));
    }

    fn read_message(
        &mut self,
        item: Node<'_>,
        path: &Path<'_>,
        problems: &mut Problems,
        report: &mut LossReport,
    ) {
        let role = item.get_str("role").unwrap_or_default();
        if role != "assistant" {
            self.flush();
            self.messages.extend(read_input(item, role, path, problems));
            return;
        }
        let content = read_content(item.get("content"), path, problems);
        // Items of a tool that the provider runs belong to the message that follows them.
        if self.current.as_ref().is_some_and(|message| {
            message.tool_calls.is_empty()
                && !message.content.iter().all(|part| matches!(part, Part::Native(_)))
        }) {
            self.flush();
        }
        let message = self.assistant();
        if !message.tool_calls.is_empty() {
            report.add(path, "the place of the message", "it was after a call, and is before it");
        }
        message.content.extend(content);
        message.id = item.get_str("id").map(str::to_owned);
        message.other = VENDOR.read_extra(item, &["type", "role", "content", "id"]);
    }

    fn read_call(&mut self, item: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
        let is_custom = item.get_str("type") == Some(CUSTOM_CALL);
        let argument = if is_custom { "input" } else { "arguments" };
        let (Some(id), Some(name), Some(arguments)) =
            (text(item, "call_id"), text(item, "name"), text(item, argument))
        else {
            return problems.add(path, &REQUIRED, format!("expected `call_id`, `name` and `{argument}`"));
        };
        let message = self.assistant();
        // A call between items of reasoning shows their order.
        if message.reasoning.is_some() {
            VENDOR.reasoning_mut(message).push(item.to_value());
        }
        let mut call = match is_custom {
            true => ToolCall::custom(id, name, &arguments),
            false => ToolCall::new(id, name, arguments),
        };
        call.other = merged(call.other, VENDOR.read_extra(item, &["type", "call_id", "name", argument]));
        message.tool_calls.push(call);
    }
}

/// The types of a call whose argument is a string, and of its result.
const CUSTOM_CALL: &str = "custom_tool_call";
const CUSTOM_OUTPUT: &str = "custom_tool_call_output";

/// Returns the members of both.
fn merged(one: Option<Value>, other: Option<Value>) -> Option<Value> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        one.members().chain(other.members()).for_each(|(key, value)| w.key(key).node(value));
    });
    Value::parse(&text).ok()
}

fn read_input(item: Node<'_>, role: &str, path: &Path<'_>, problems: &mut Problems) -> Option<Message> {
    let role_here = match role {
        "user" => Role::User,
        "system" | "developer" => Role::System,
        _ => {
            problems.add(
                &path.key("role"),
                &REQUIRED,
                "expected `user`, `assistant`, `system` or `developer`",
            );
            return None;
        }
    };
    let mut message = Message::new(role_here, read_content(item.get("content"), path, problems));
    message.other = VENDOR.read_extra(item, &["type", "role", "content"]);
    if role == "developer" {
        let extra = message.other.as_ref().and_then(|other| other.get(VENDOR.namespace));
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.field("role", role).optional(VENDOR.namespace, &extra);
        });
        message.other = Value::parse(&text).ok();
    }
    Some(message)
}

fn read_output(item: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Message> {
    let Some(id) = item.get_str("call_id") else {
        problems.add(&path.key("call_id"), &REQUIRED, "missing, expected a string");
        return None;
    };
    let mut message = Message::new(Role::Tool, read_content(item.get("output"), path, problems));
    message.tool_call_id = Some(id.to_owned());
    message.other = VENDOR.read_extra(item, &["type", "call_id", "output"]);
    Some(message)
}

fn read_content(content: Option<Node<'_>>, path: &Path<'_>, problems: &mut Problems) -> Vec<Part> {
    let Some(content) = content else {
        problems.add(path, &REQUIRED, "expected a content");
        return Vec::new();
    };
    let text = content.as_str().map(Part::text);
    let parts = content.elements().map(|part| read_part(part).unwrap_or_else(|| VENDOR.native(part)));
    text.into_iter().chain(parts).collect()
}

fn read_part(node: Node<'_>) -> Option<Part> {
    match node.get_str("type")? {
        "input_text" | "output_text" | "text" => {
            // Every text of a model has a list of annotations.
            let is_plain = node.get("annotations").is_some_and(|list| list.is_array() && list.is_empty());
            let known: &[&str] = if is_plain { &["type", "text", "annotations"] } else { &["type", "text"] };
            let other = VENDOR.read_extra(node, known);
            Some(Part::Text(TextPart { text: text(node, "text")?, index: None, other }))
        }
        "refusal" => Some(Part::Refusal(RefusalPart { refusal: text(node, "refusal")?, other: None })),
        "input_image" => {
            let level = text(node, "detail").and_then(|detail| Detail::from_name(&detail));
            let known: &[&str] = &["type", "image_url", "detail"];
            let known = known.get(..if level.is_some() { 3 } else { 2 }).unwrap_or(known);
            // The field is required, so `auto` is written where there is no level.
            let detail = level.filter(|level| *level != Detail::Auto);
            let other = VENDOR.read_extra(node, known);
            let url = text(node, "image_url")?;
            Some(Part::Image(ImagePart { url, detail, other, ..ImagePart::default() }))
        }
        "input_file" => read_file(node),
        _ => None,
    }
}

fn read_file(node: Node<'_>) -> Option<Part> {
    let filename = text(node, "filename");
    let other = VENDOR.read_extra(node, &["type", "filename", "file_data", "file_id", "file_url"]);
    let data = node.get_str("file_data").and_then(data_url);
    if let Some((media_type, data)) = data {
        return Some(Part::File(FilePart {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
            filename,
            other,
        }));
    }
    let id = text(node, "file_id").map(FileSource::Id);
    let source = id.or_else(|| text(node, "file_url").map(FileSource::Url))?;
    Some(Part::FileReference(FileReferencePart { source, media_type: None, filename, other }))
}

fn write(messages: &[Placed<'_>], w: &mut Writer<'_>, report: &mut LossReport) {
    let root = Path::root("messages");
    let calls = messages.iter().flat_map(|placed| &placed.message.tool_calls);
    let custom: HashSet<&str> =
        calls.filter(|call| call.custom_input().is_some()).map(|call| call.id.as_str()).collect();
    w.array(|w| {
        for Placed { index, message } in messages {
            match message.role {
                Role::Assistant => write_assistant(w, message, &root.index(*index), report),
                Role::Tool => w.object(|w| {
                    let is_custom = message.tool_call_id.as_deref().is_some_and(|id| custom.contains(id));
                    w.field("type", if is_custom { CUSTOM_OUTPUT } else { "function_call_output" });
                    w.optional("call_id", &message.tool_call_id);
                    write_content(w.key("output"), message);
                    VENDOR.write_extra(w, &message.other);
                }),
                Role::User | Role::System => w.object(|w| {
                    let role = member(&message.other, "role").and_then(Node::as_str);
                    w.field("role", role.unwrap_or(message.role.as_str()));
                    write_content(w.key("content"), message);
                    VENDOR.write_extra(w, &message.other);
                }),
            }
        }
    });
}

fn write_assistant(w: &mut Writer<'_>, message: &Message, path: &Path<'_>, report: &mut LossReport) {
    for step in steps(message, VENDOR.reasoning(message), "call_id") {
        match step {
            Step::Reasoning(item) => w.node(item),
            Step::Content => write_items(w, message, path, report),
            Step::Call(call, _) => w.object(|w| {
                match call.custom_input() {
                    Some(input) => {
                        w.field("type", CUSTOM_CALL).field("call_id", &call.id);
                        w.field("name", &call.name).field("input", &input);
                    }
                    None => wire::write_responses_call(w, call),
                }
                VENDOR.write_extra(w, &call.other);
            }),
        }
    }
}

/// Writes the content of an assistant's message: items of its own, and its text as one item.
fn write_items(w: &mut Writer<'_>, message: &Message, path: &Path<'_>, report: &mut LossReport) {
    let parts: Vec<&Part> = VENDOR.parts(message).collect();
    for run in parts.chunk_by(|a, b| matches!(a, Part::Native(_)) == matches!(b, Part::Native(_))) {
        if let [Part::Native(_), ..] = run {
            run.iter().for_each(|part| write_part(w, part));
        } else {
            w.object(|w| write_text(w, message, run, path, report));
        }
    }
}

/// Writes text of an assistant. A message that came from the API has an identifier and a list of parts; another one has only
/// a string, since the API accepts no list without an identifier.
fn write_text(
    w: &mut Writer<'_>,
    message: &Message,
    run: &[&Part],
    path: &Path<'_>,
    report: &mut LossReport,
) {
    let has_status = VENDOR.extra(&message.other).any(|(key, _)| key == "status");
    if let Some(id) = message.id.as_ref().filter(|_| has_status) {
        w.field("type", "message").field("id", id).field("role", "assistant");
        w.key("content").array(|w| run.iter().for_each(|part| write_output(w, part)));
    } else {
        if run.len() > 1 {
            let why = "a message without an identifier of OpenAI has one text";
            report.add(&path.key("content"), format!("the boundaries of {} parts", run.len()), why);
        }
        for part in run.iter().filter(|part| matches!(part, Part::Refusal(_))) {
            let why = "in a message without an identifier of OpenAI, it is text";
            report.add(&path.key("content"), format!("the type of the part `{}`", part.kind()), why);
        }
        let texts = run.iter().map(|part| match part {
            Part::Refusal(refusal) => refusal.refusal.as_str(),
            part => part.as_text().unwrap_or_default(),
        });
        w.field("role", "assistant").field("content", &texts.collect::<String>());
    }
    VENDOR.write_extra(w, &message.other);
}

fn write_output(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| match part {
        Part::Refusal(refusal) => drop(w.field("type", "refusal").field("refusal", &refusal.refusal)),
        part => {
            w.field("type", "output_text").field("text", part.as_text().unwrap_or_default());
            if !VENDOR.extra(part.other()).any(|(key, _)| key == "annotations") {
                w.key("annotations").array(|_| {});
            }
            VENDOR.write_extra(w, part.other());
        }
    });
}

fn write_content(w: &mut Writer<'_>, message: &Message) {
    match VENDOR.only_text(message) {
        Some(text) => w.string(text),
        None => w.array(|w| VENDOR.parts(message).for_each(|part| write_part(w, part))),
    }
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    if let Part::Native(native) = part {
        return w.node(native.item.node());
    }
    w.object(|w| {
        wire::write_responses_part(w, part, None);
        VENDOR.write_extra(w, part.other());
    });
}
