//! `messages` and `system` of Anthropic's Messages.

use cog_json::{Node, Writer};

use super::{
    LossReport, Placed, Vendor, flush, is_empty, name_results, read_arguments, report_arguments, text,
};
use crate::{
    Conversation, FilePart, FileReferencePart, FileSource, ImagePart, Message, Part, Role, TextPart,
    ToolCall,
    problem::{Path, Problems},
    rules::{ENUM, REQUIRED, TYPE},
    wire::{self, Step, data_url, reports_error, steps},
};

pub(super) static VENDOR: Vendor = Vendor {
    title: "Anthropic",
    provider: "anthropic",
    namespace: "anthropic",
    holds: &["filename"],
    levels: &[],
    takes,
    write,
};

fn takes(role: Role, part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        // A URL is one of an image or of a PDF; an upload can be of any type.
        Part::FileReference(FileReferencePart {
            source: FileSource::Url(_), media_type: Some(kind), ..
        }) if kind != "application/pdf" => false,
        Part::Image(_) | Part::FileReference(_) => matches!(role, Role::User | Role::Tool),
        Part::File(file) => matches!(role, Role::User | Role::Tool) && file.media_type == "application/pdf",
        Part::Refusal(_) => role == Role::Assistant,
        Part::Audio(_) | Part::Native(_) => false,
    }
}

pub(super) fn read(node: Node<'_>, problems: &mut Problems, report: &mut LossReport) -> Conversation {
    let mut conversation = Conversation::default();
    let root = Path::root("messages");
    if let Some(system) = node.get("system").filter(|system| !system.is_null()) {
        let path = Path::root("system");
        let mut message = Message::new(Role::System, Vec::new());
        message.content.extend(system.as_str().map(Part::text));
        for (block, at) in contents(system, &path, problems) {
            message.content.extend(part(block, &path.index(at), problems));
        }
        conversation.0.push(message);
    }
    report.other_members(node, &["system", "messages"]);
    let messages = node.get("messages").unwrap_or(node);
    if !messages.is_array() {
        problems.add(&root, &TYPE, format!("found {}, expected an array of messages", messages.kind()));
    }
    for (index, message) in messages.elements().enumerate() {
        read_message(message, &root.index(index), &mut conversation.0, problems, report);
    }
    name_results(&mut conversation);
    conversation
}

/// Returns the blocks of a content, each with its index. A string has none.
fn contents<'a>(node: Node<'a>, path: &Path<'_>, problems: &mut Problems) -> Vec<(Node<'a>, usize)> {
    if !node.is_array() && !node.is_string() {
        problems.add(path, &TYPE, format!("found {}, expected a string or blocks", node.kind()));
    }
    node.elements().zip(0..).collect()
}

fn read_message(
    node: Node<'_>,
    path: &Path<'_>,
    messages: &mut Vec<Message>,
    problems: &mut Problems,
    report: &mut LossReport,
) {
    let role = match node.get_str("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return problems.add(&path.key("role"), &ENUM, "expected `user`, `assistant` or `system`"),
    };
    let Some(content) = node.get("content") else {
        return problems.add(&path.key("content"), &REQUIRED, "missing, expected a string or blocks");
    };
    let other = VENDOR.read_extra(node, &["role", "content"]);
    let mut current = Message { other, ..Message::new(role, Vec::new()) };
    current.content.extend(content.as_str().map(Part::text));
    let path = path.key("content");
    let start = messages.len();
    for (block, at) in contents(content, &path, problems) {
        let path = path.index(at);
        match block.get_str("type").unwrap_or_default() {
            // Results are messages of their own in Harmony, and blocks of the next user turn here.
            "tool_result" => {
                flush(&mut current, messages);
                messages.extend(read_result(block, &path, problems));
            }
            "tool_use" => read_call(block, &path, &mut current, problems),
            "thinking" | "redacted_thinking" => read_thinking(block, &mut current, messages),
            _ => {
                if !current.tool_calls.is_empty() {
                    report.add(&path, "the place of the block", "it was after a call, and is before it");
                }
                current.content.extend(part(block, &path, problems));
            }
        }
    }
    if messages.len() == start || !is_empty(&current) {
        messages.push(current);
    }
}

/// Thinking after text belongs to what follows; thinking between calls stays between them.
fn read_thinking(block: Node<'_>, current: &mut Message, messages: &mut Vec<Message>) {
    if current.tool_calls.is_empty() && !current.content.is_empty() {
        flush(current, messages);
    }
    VENDOR.reasoning_mut(current).push(block.to_value());
}

fn read_call(node: Node<'_>, path: &Path<'_>, message: &mut Message, problems: &mut Problems) {
    let (Some(id), Some(name)) = (text(node, "id"), text(node, "name")) else {
        return problems.add(path, &REQUIRED, "expected `id` and `name`");
    };
    // A call between blocks of thinking shows their order.
    if message.reasoning.is_some() {
        VENDOR.reasoning_mut(message).push(node.to_value());
    }
    let other = VENDOR.read_extra(node, &["type", "id", "name", "input"]);
    message.tool_calls.push(ToolCall { other, ..ToolCall::new(id, name, read_arguments(node.get("input"))) });
}

fn read_result(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Message> {
    let Some(id) = node.get_str("tool_use_id") else {
        problems.add(&path.key("tool_use_id"), &REQUIRED, "missing, expected a string");
        return None;
    };
    let content = node.get("content");
    let mut parts: Vec<Part> = content.and_then(Node::as_str).map(Part::text).into_iter().collect();
    let path = path.key("content");
    let blocks = content.into_iter().flat_map(Node::elements).enumerate();
    parts.extend(blocks.filter_map(|(at, block)| part(block, &path.index(at), problems)));
    let mut message = Message::new(Role::Tool, parts);
    message.tool_call_id = Some(id.to_owned());
    let is_error = node.get("is_error").and_then(Node::as_bool).unwrap_or_default();
    // A result that reports an error as JSON needs no other mark.
    let known: &[&str] = &["type", "tool_use_id", "content", "is_error"];
    let known = if is_error == reports_error(&message) { known } else { &["type", "tool_use_id", "content"] };
    message.other = VENDOR.read_extra(node, known);
    Some(message)
}

/// Reads a block. A block that Harmony has no part for stays as it is.
fn part(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Part> {
    if node.get_str("type").is_none() {
        problems.add(&path.key("type"), &REQUIRED, "missing, expected the type of the block");
        return None;
    }
    Some(known_part(node).unwrap_or_else(|| VENDOR.native(node)))
}

fn known_part(node: Node<'_>) -> Option<Part> {
    match node.get_str("type")? {
        "text" => {
            let other = VENDOR.read_extra(node, &["type", "text"]);
            Some(Part::Text(TextPart { text: text(node, "text")?, index: None, other }))
        }
        "image" => {
            let (url, _) = source(node.get("source")?)?;
            let FileSource::Url(url) = url else { return None };
            let other = VENDOR.read_extra(node, &["type", "source"]);
            Some(Part::Image(ImagePart { url, other, ..ImagePart::default() }))
        }
        "document" => document(node),
        _ => None,
    }
}

fn document(node: Node<'_>) -> Option<Part> {
    let filename = text(node, "title");
    let other = VENDOR.read_extra(node, &["type", "source", "title"]);
    let (source, media_type) = source(node.get("source")?)?;
    if let FileSource::Url(url) = &source
        && let Some((media_type, data)) = data_url(url)
    {
        return Some(Part::File(FilePart {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
            filename,
            other,
        }));
    }
    Some(Part::FileReference(FileReferencePart { source, media_type, filename, other }))
}

/// Reads a source as a URL or an identifier, with the media type if it is known.
fn source(node: Node<'_>) -> Option<(FileSource, Option<String>)> {
    match node.get_str("type")? {
        "base64" => {
            let media_type = node.get_str("media_type")?;
            let data = node.get_str("data")?;
            Some((FileSource::Url(format!("data:{media_type};base64,{data}")), None))
        }
        "url" => Some((FileSource::Url(text(node, "url")?), None)),
        "file" => Some((FileSource::Id(text(node, "file_id")?), None)),
        _ => None,
    }
}

fn write(messages: &[Placed<'_>], w: &mut Writer<'_>, report: &mut LossReport) {
    let leading = messages.iter().take_while(|placed| placed.message.role == Role::System).count();
    // Later system messages stay where they are: Anthropic accepts the role inside `messages`.
    let (system, turns) = messages.split_at(leading);
    if leading > 1 {
        let why = "Anthropic has one system prompt";
        report.add(&"messages[1]", "the boundary between system messages", why);
    }
    w.object(|w| {
        match system {
            [] => {}
            [Placed { message, .. }] if VENDOR.only_text(message).is_some() => {
                w.field("system", &message.text());
            }
            system => {
                let parts = system.iter().flat_map(|placed| VENDOR.parts(placed.message));
                w.key("system").array(|w| parts.for_each(|part| write_part(w, part)));
            }
        }
        w.key("messages").array(|w| {
            for turn in turns.chunk_by(|previous, next| joins(previous.message, next.message)) {
                write_turn(w, turn, report);
            }
        });
    });
}

/// Whether two messages are one turn: results with what follows from the user, and what an assistant says in steps.
fn joins(previous: &Message, next: &Message) -> bool {
    match (previous.role, next.role) {
        (Role::Tool, Role::Tool) => true,
        (Role::Tool, Role::User) => VENDOR.parts(next).next().is_some(),
        (Role::Assistant, Role::Assistant) => {
            next.reasoning.as_ref().is_some_and(|reasoning| reasoning.provider == VENDOR.provider)
        }
        _ => false,
    }
}

fn write_turn(w: &mut Writer<'_>, turn: &[Placed<'_>], report: &mut LossReport) {
    let Some(Placed { message: first, .. }) = turn.first() else { return };
    let root = Path::root("messages");
    let role = if first.role == Role::Tool { Role::User } else { first.role };
    w.object(|w| {
        w.field("role", role.as_str()).key("content");
        match turn {
            [Placed { message: only, .. }]
                if only.role != Role::Tool && only.tool_calls.is_empty() && only.reasoning.is_none() =>
            {
                match VENDOR.only_text(only) {
                    Some(text) => w.string(text),
                    None => w.array(|w| VENDOR.parts(only).for_each(|part| write_part(w, part))),
                }
            }
            turn => w.array(|w| {
                for Placed { index, message } in turn {
                    write_blocks(w, message, &root.index(*index), report);
                }
            }),
        }
        VENDOR.write_extra(w, &first.other.clone().filter(|_| first.role != Role::Tool));
    });
}

fn write_blocks(w: &mut Writer<'_>, message: &Message, path: &Path<'_>, report: &mut LossReport) {
    if message.role == Role::Tool {
        return w.object(|w| write_result(w, message));
    }
    for step in steps(message, VENDOR.reasoning(message), "id") {
        match step {
            Step::Reasoning(item) => w.node(item),
            Step::Content => VENDOR.parts(message).for_each(|part| write_part(w, part)),
            Step::Call(call, _) => w.object(|w| {
                if !wire::write_anthropic_call(w, call) {
                    report_arguments(message, call, path, report);
                }
                VENDOR.write_extra(w, &call.other);
            }),
        }
    }
}

fn write_result(w: &mut Writer<'_>, message: &Message) {
    w.field("type", "tool_result").optional("tool_use_id", &message.tool_call_id);
    match VENDOR.only_text(message) {
        Some(text) => drop(w.field("content", text)),
        None if message.content.is_empty() => {}
        None => w.key("content").array(|w| VENDOR.parts(message).for_each(|part| write_part(w, part))),
    }
    if reports_error(message) && !VENDOR.extra(&message.other).any(|(key, _)| key == "is_error") {
        w.field("is_error", &true);
    }
    VENDOR.write_extra(w, &message.other);
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    if let Part::Native(native) = part {
        return w.node(native.item.node());
    }
    w.object(|w| {
        wire::write_anthropic_part(w, part);
        VENDOR.write_extra(w, part.other());
    });
}
