//! `messages` of OpenAI's Chat Completions. They are read as Harmony, which is a superset.

use cog_json::{Node, Value, Writer};

use super::{LossReport, Placed, Vendor};
use crate::{Detail, FileSource, Message, Part, Role, other::member, problem::Path, wire};

pub(super) static VENDOR: Vendor = Vendor {
    title: "OpenAI Chat",
    provider: "openai",
    namespace: "openai_chat",
    holds: &[
        "name",
        "role",
        "annotations",
        "audio",
        "custom",
        "detail",
        "filename",
        "file_data",
        "file_id",
        "prompt_cache_breakpoint",
    ],
    levels: &Detail::ALL,
    takes,
    write,
};

/// The members that Harmony does not name, but OpenAI Chat does.
const OWN: [&str; 3] = ["annotations", "audio", "prompt_cache_breakpoint"];

fn takes(role: Role, part: &Part) -> bool {
    match part {
        Part::Text(_) => true,
        Part::Refusal(_) => role == Role::Assistant,
        Part::Image(_) | Part::File(_) => matches!(role, Role::User | Role::Tool),
        Part::Audio(audio) => role == Role::User && matches!(audio.format.as_str(), "wav" | "mp3"),
        Part::FileReference(file) => role == Role::User && matches!(file.source, FileSource::Id(_)),
        Part::Native(_) => false,
    }
}

fn write(messages: &[Placed<'_>], w: &mut Writer<'_>, report: &mut LossReport) {
    let root = Path::root("messages");
    w.array(|w| {
        let mut media: Vec<&Part> = Vec::new();
        for Placed { index, message } in messages {
            if message.role != Role::Tool {
                flush_media(w, &mut media);
            }
            w.object(|w| write_message(w, message));
            if message.role == Role::Tool {
                let path = root.index(*index);
                collect_media(message, &path.key("content"), &mut media, report);
            }
        }
        flush_media(w, &mut media);
    });
}

/// A result contains only text. Its images follow in a user message, after the last result.
fn collect_media<'a>(
    message: &'a Message,
    path: &Path<'_>,
    media: &mut Vec<&'a Part>,
    report: &mut LossReport,
) {
    for (index, part) in message.content.iter().enumerate() {
        if matches!(part, Part::Image(_) | Part::File(_)) {
            let why = "a result contains only text; it is in a user message after the results";
            report.add(&path.index(index), format!("the place of the part `{}`", part.kind()), why);
            media.push(part);
        }
    }
}

fn flush_media(w: &mut Writer<'_>, media: &mut Vec<&Part>) {
    if media.is_empty() {
        return;
    }
    w.object(|w| {
        w.field("role", "user");
        w.key("content").array(|w| media.drain(..).for_each(|part| write_part(w, part)));
    });
}

fn write_message(w: &mut Writer<'_>, message: &Message) {
    let role = member(&message.other, "role").and_then(Node::as_str);
    w.field("role", role.unwrap_or(message.role.as_str()));
    if message.role != Role::Tool {
        w.optional("name", &message.name);
    }
    write_content(w.key("content"), message);
    if let [Part::Refusal(refusal)] = message.content.as_slice() {
        w.field("refusal", &refusal.refusal);
    }
    if !message.tool_calls.is_empty() {
        w.key("tool_calls").array(|w| {
            message.tool_calls.iter().for_each(|call| w.object(|w| wire::write_chat_call(w, call)));
        });
    }
    if message.role == Role::Tool {
        w.optional("tool_call_id", &message.tool_call_id);
    }
    write_own(w, &message.other);
}

fn write_content(w: &mut Writer<'_>, message: &Message) {
    match (message.content.as_slice(), message.role) {
        ([Part::Text(text)], _) if OWN.iter().all(|key| member(&text.other, key).is_none()) => {
            w.string(&text.text);
        }
        ([], Role::Assistant) => w.null(),
        ([Part::Refusal(_)], _) => w.null(),
        ([], Role::Tool) => w.string(""),
        _ => w.array(|w| {
            let parts = VENDOR.parts(message);
            let parts = parts.filter(|part| message.role != Role::Tool || matches!(part, Part::Text(_)));
            parts.for_each(|part| write_part(w, part));
        }),
    }
}

fn write_own(w: &mut Writer<'_>, other: &Option<Value>) {
    for key in OWN {
        if let Some(value) = member(other, key) {
            w.key(key).node(value);
        }
    }
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| {
        wire::write_chat_part(w, part, None);
        write_own(w, part.other());
    });
}
