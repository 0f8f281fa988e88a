//! `contents` and `systemInstruction` of Google's Gemini.

use std::collections::HashMap;

use cog_json::{Node, Value, Writer};

use super::{
    LossReport, Placed, Vendor, flush, is_empty, name_results, read_arguments, report_arguments, text,
};
use crate::{
    AudioPart, Conversation, Detail, FilePart, FileReferencePart, FileSource, ImagePart, Message, Part, Role,
    TextPart, ToolCall,
    problem::{Path, Problems},
    rules::{ENUM, REQUIRED, TYPE},
    wire::{self, image_type},
};

pub(super) static VENDOR: Vendor = Vendor {
    title: "Gemini",
    provider: "gemini",
    namespace: "gemini",
    holds: &["signature", "sample_rate"],
    levels: &[Detail::Low, Detail::High],
    takes,
    write,
};

fn takes(role: Role, part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Image(_) | Part::Audio(_) | Part::File(_) => role != Role::System,
        Part::FileReference(file) => {
            role != Role::System && matches!(file.source, FileSource::Url(_)) && file.media_type.is_some()
        }
        Part::Refusal(_) => role == Role::Assistant,
        Part::Native(_) => false,
    }
}

/// Returns a member, by its name in JSON or in Python.
fn member<'a>(node: Node<'a>, camel: &str, snake: &str) -> Option<Node<'a>> {
    node.get(camel).or_else(|| node.get(snake)).filter(|value| !value.is_null())
}

pub(super) fn read(node: Node<'_>, problems: &mut Problems, report: &mut LossReport) -> Conversation {
    let mut reader = Reader::default();
    report.other_members(node, &["contents", "systemInstruction", "system_instruction"]);
    if let Some(system) = member(node, "systemInstruction", "system_instruction") {
        let mut message = Message::new(Role::System, Vec::new());
        message.content.extend(system.as_str().map(Part::text));
        message.content.extend(parts(system).map(read_part));
        reader.messages.push(message);
    }
    let contents = node.get("contents").unwrap_or(node);
    let root = Path::root("contents");
    if !contents.is_array() {
        problems.add(&root, &TYPE, format!("found {}, expected an array of contents", contents.kind()));
    }
    for (index, content) in contents.elements().enumerate() {
        reader.read_content(content, &root.index(index), problems, report);
    }
    let mut conversation = Conversation(reader.messages);
    name_results(&mut conversation);
    conversation
}

fn parts(content: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    content.get("parts").into_iter().flat_map(Node::elements)
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    /// The calls without an identifier, which get one.
    unnamed: usize,
    /// The calls that got an identifier and have no result yet, in their order.
    open: Vec<OpenCall>,
}

struct OpenCall {
    function: String,
    id: String,
}

impl Reader {
    fn read_content(
        &mut self,
        node: Node<'_>,
        path: &Path<'_>,
        problems: &mut Problems,
        report: &mut LossReport,
    ) {
        let role = match node.get_str("role") {
            Some("model") => Role::Assistant,
            Some("user" | "function") | None => Role::User,
            Some(_) => return problems.add(&path.key("role"), &ENUM, "expected `user` or `model`"),
        };
        let mut current =
            Message { other: VENDOR.read_extra(node, &["role", "parts"]), ..Message::new(role, Vec::new()) };
        let start = self.messages.len();
        let path = path.key("parts");
        for (at, part) in parts(node).enumerate() {
            let path = path.index(at);
            if let Some(call) = member(part, "functionCall", "function_call") {
                self.read_call(part, call, &mut current, &path, problems);
            } else if let Some(result) = member(part, "functionResponse", "function_response") {
                flush(&mut current, &mut self.messages);
                let message = self.read_result(result);
                self.messages.push(message);
            } else if part.get("thought").and_then(Node::as_bool) == Some(true) {
                if !current.content.is_empty() && current.tool_calls.is_empty() {
                    flush(&mut current, &mut self.messages);
                }
                VENDOR.reasoning_mut(&mut current).push(part.to_value());
            } else {
                if !current.tool_calls.is_empty() {
                    report.add(&path, "the place of the part", "it was after a call, and is before it");
                }
                current.content.push(read_part(part));
            }
        }
        if self.messages.len() == start || !is_empty(&current) {
            self.messages.push(current);
        }
    }

    fn read_call(
        &mut self,
        part: Node<'_>,
        call: Node<'_>,
        message: &mut Message,
        path: &Path<'_>,
        problems: &mut Problems,
    ) {
        let Some(name) = call.get_str("name") else {
            return problems.add(&path.key("functionCall"), &REQUIRED, "expected `name`");
        };
        let id = text(call, "id").unwrap_or_else(|| {
            self.unnamed += 1;
            let id = format!("call_{}", self.unnamed);
            self.open.push(OpenCall { function: name.to_owned(), id: id.clone() });
            id
        });
        let signature = member(part, "thoughtSignature", "thought_signature").and_then(Node::as_str);
        let signature = signature.map(str::to_owned);
        let other = VENDOR.read_extra(call, &["id", "name", "args"]);
        let call = ToolCall { signature, other, ..ToolCall::new(id, name, read_arguments(call.get("args"))) };
        message.tool_calls.push(call);
    }

    /// Reads a result. Without an identifier, it belongs to the first call of the function that has no result.
    fn read_result(&mut self, node: Node<'_>) -> Message {
        let name = text(node, "name");
        let id = text(node, "id").or_else(|| {
            let first = self.open.iter().position(|call| Some(&call.function) == name.as_ref())?;
            Some(self.open.remove(first).id)
        });
        let response = node.get("response").map(|response| match response.get_str("output") {
            Some(output) if response.len() == 1 => output.to_owned(),
            _ => response.to_string(),
        });
        let mut message = Message::new(Role::Tool, response.map(Part::text).into_iter().collect());
        message.content.extend(parts(node).map(read_part));
        message.tool_call_id = id.or_else(|| name.clone());
        message.name = name;
        message.other = VENDOR.read_extra(node, &["id", "name", "response", "parts"]);
        message
    }
}

/// Reads a part. A part that Harmony has no form for stays as it is.
fn read_part(node: Node<'_>) -> Part {
    known_part(node).unwrap_or_else(|| VENDOR.native(node))
}

fn known_part(node: Node<'_>) -> Option<Part> {
    if let Some(text) = node.get_str("text") {
        let other = VENDOR.read_extra(node, &["text", "thought"]);
        return Some(Part::Text(TextPart { text: text.to_owned(), index: None, other }));
    }
    if let Some(blob) = member(node, "inlineData", "inline_data") {
        let other = VENDOR.read_extra(node, &["inlineData", "inline_data"]);
        let media_type = member(blob, "mimeType", "mime_type")?.as_str()?;
        let data = blob.get_str("data")?.to_owned();
        let filename = None;
        return Some(match media_type.split_once('/') {
            Some(("image", _)) => read_image(format!("data:{media_type};base64,{data}"), node),
            Some(("audio", format)) => Part::Audio(read_audio(format, data, other)),
            _ => Part::File(FilePart { media_type: media_type.to_owned(), data, filename, other }),
        });
    }
    let file = member(node, "fileData", "file_data")?;
    let url = member(file, "fileUri", "file_uri")?.as_str()?.to_owned();
    let media_type = member(file, "mimeType", "mime_type").and_then(Node::as_str).map(str::to_owned);
    match media_type {
        // Only an image is written without a media type: one whose URL does not show it.
        None => Some(read_image(url, node)),
        Some(kind) if image_type(&url) == Some(kind.as_str()) => Some(read_image(url, node)),
        media_type => {
            let other = VENDOR.read_extra(node, &["fileData", "file_data"]);
            let source = FileSource::Url(url);
            Some(Part::FileReference(FileReferencePart { source, media_type, filename: None, other }))
        }
    }
}

/// The levels of detail, with their names for Gemini.
const LEVELS: [(&str, Detail); 2] =
    [("MEDIA_RESOLUTION_LOW", Detail::Low), ("MEDIA_RESOLUTION_HIGH", Detail::High)];

fn read_image(url: String, node: Node<'_>) -> Part {
    let level = member(node, "mediaResolution", "media_resolution");
    let name = level.filter(|level| level.len() == 1).and_then(|level| level.get_str("level"));
    let detail = LEVELS.iter().find(|(known, _)| Some(*known) == name).map(|(_, detail)| *detail);
    let known = ["inlineData", "inline_data", "fileData", "file_data", "mediaResolution", "media_resolution"];
    // A level that Harmony has no name for stays with the other members.
    let known = known.get(..if detail.is_some() { 6 } else { 4 }).unwrap_or_default();
    Part::Image(ImagePart { url, detail, other: VENDOR.read_extra(node, known), ..ImagePart::default() })
}

/// Reads `wav` or `L16;rate=24000`.
fn read_audio(subtype: &str, data: String, other: Option<Value>) -> AudioPart {
    let mut audio = AudioPart { data, format: subtype.to_owned(), sample_rate: None, other };
    if let Some((format, rate)) = subtype.split_once(";rate=")
        && let Ok(rate) = rate.parse()
    {
        audio.format = format.to_owned();
        audio.sample_rate = Some(rate);
    }
    audio
}

fn write(messages: &[Placed<'_>], w: &mut Writer<'_>, report: &mut LossReport) {
    let (system, turns): (Vec<&Placed<'_>>, Vec<&Placed<'_>>) =
        messages.iter().partition(|placed| placed.message.role == Role::System);
    let leading = messages.iter().take_while(|placed| placed.message.role == Role::System).count();
    if system.len() > leading {
        let why = "Gemini has one system instruction, before all contents";
        report.add(&"messages", "the place of later system messages", why);
    } else if system.len() > 1 {
        report.add(
            &"messages[1]",
            "the boundary between system messages",
            "Gemini has one system instruction",
        );
    }
    let calls = messages.iter().flat_map(|placed| &placed.message.tool_calls);
    let names: Names<'_> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    w.object(|w| {
        if !system.is_empty() {
            w.key("systemInstruction").object(|w| {
                let parts = system.iter().flat_map(|placed| VENDOR.parts(placed.message));
                w.key("parts").array(|w| parts.for_each(|part| write_part(w, part)));
            });
        }
        w.key("contents").array(|w| {
            for turn in turns.chunk_by(|previous, next| joins(previous.message, next.message)) {
                write_turn(w, turn, &names, report);
            }
        });
    });
}

/// The function of each call, by its identifier. A response requires it.
type Names<'a> = HashMap<&'a str, &'a str>;

/// Whether two messages are one turn: results with what follows from the user, and what a model says in steps.
fn joins(previous: &Message, next: &Message) -> bool {
    match (previous.role, next.role) {
        (Role::Tool, Role::Tool) => true,
        (Role::Tool, Role::User) => VENDOR.parts(next).next().is_some(),
        (Role::Assistant, Role::Assistant) => !VENDOR.reasoning(next).is_empty(),
        _ => false,
    }
}

fn write_turn(w: &mut Writer<'_>, turn: &[&Placed<'_>], names: &Names<'_>, report: &mut LossReport) {
    let Some(Placed { message: first, .. }) = turn.first() else { return };
    w.object(|w| {
        w.field("role", if first.role == Role::Assistant { "model" } else { "user" });
        w.key("parts").array(|w| turn.iter().for_each(|placed| write_parts(w, placed, names, report)));
        if first.role != Role::Tool {
            VENDOR.write_extra(w, &first.other);
        }
    });
}

fn write_parts(w: &mut Writer<'_>, placed: &Placed<'_>, names: &Names<'_>, report: &mut LossReport) {
    let message = placed.message;
    let root = Path::root("messages");
    let path = root.index(placed.index);
    if message.role == Role::Tool {
        return write_result(w, message, &path, names, report);
    }
    VENDOR.reasoning(message).iter().for_each(|item| w.node(item.node()));
    VENDOR.parts(message).for_each(|part| write_part(w, part));
    for call in &message.tool_calls {
        w.object(|w| {
            w.key("functionCall").object(|w| {
                if !wire::write_gemini_call(w, call) {
                    report_arguments(message, call, &path, report);
                }
                VENDOR.write_extra(w, &call.other);
            });
            w.optional("thoughtSignature", &call.signature);
        });
    }
}

fn write_result(
    w: &mut Writer<'_>,
    message: &Message,
    path: &Path<'_>,
    names: &Names<'_>,
    report: &mut LossReport,
) {
    let texts = message.content.iter().filter_map(Part::as_text).count();
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    if texts > 1 {
        let why = "a response of Gemini is one object";
        report.add(&path.key("content"), "the boundaries of texts", why);
    }
    w.object(|w| {
        w.key("functionResponse").object(|w| {
            let name = message.name.as_deref().or_else(|| names.get(id).copied());
            w.field("id", id).field("name", name.unwrap_or(id));
            if texts > 0 {
                write_response(w.key("response"), &message.text());
            }
            if message.content.len() > texts {
                let media = VENDOR.parts(message).filter(|part| part.as_text().is_none());
                w.key("parts").array(|w| media.for_each(|part| write_part(w, part)));
            }
            VENDOR.write_extra(w, &message.other);
        });
    });
}

/// Writes a result as an object. Text that is not an object, or that would be read back as such text, becomes `output`.
fn write_response(w: &mut Writer<'_>, text: &str) {
    match Value::parse(text).ok().filter(|value| value.is_object()) {
        Some(value) if value.node().len() != 1 || !value.get("output").is_some_and(Node::is_string) => {
            w.node(value.node());
        }
        _ => w.object(|w| {
            w.field("output", text);
        }),
    }
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    if let Part::Native(native) = part {
        return w.node(native.item.node());
    }
    w.object(|w| {
        wire::write_gemini_part(w, part);
        if let Part::Image(image) = part {
            write_level(w, image);
        }
        VENDOR.write_extra(w, part.other());
    });
}

fn write_level(w: &mut Writer<'_>, image: &ImagePart) {
    if let Some((level, _)) = LEVELS.iter().find(|(_, detail)| Some(*detail) == image.detail) {
        w.key("mediaResolution").object(|w| {
            w.field("level", level);
        });
    }
}
