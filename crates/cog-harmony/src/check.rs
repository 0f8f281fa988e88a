//! Checks a history against the rules of the format (docs/messages.md).
//!
//! The checks read JSON, not [`Message`](crate::Message)s, so that a message that cannot be read is still part of the
//! history. Each of them takes time that is linear in the size of the history.

use std::collections::{HashMap, HashSet};

use cog_json::{Event, EventKind, Kind, Limits, Node, Parser};

use crate::{
    Problem,
    assign::{Assigned, Slot, assign},
    citation,
    problem::{Path, Problems},
    read::{self, shown},
    rules::{
        ARGUMENTS_JSON, ARGUMENTS_KEY, AUDIO_DATA, AUDIO_RATE, BINARY_TEXT, CALL_ID, CALL_ROLE, CITATION,
        IMAGE_INLINE, IMAGE_TYPE, MESSAGE_ID, NAME, NAME_UNCLEAR, PART_MODEL, RESULT_ERROR, RESULT_MISSING,
        RESULT_NAME, RESULT_ORDER, RESULT_PLACE, RESULT_REPEATED, RESULT_UNKNOWN, ROLE,
    },
    wire::data_url,
};

/// Checks an array of messages; with a model also whether it accepts the parts.
pub fn check(messages: Node<'_>, model: Option<&PartSupport>) -> Vec<Problem> {
    let mut problems = Problems::default();
    read::conversation(messages, &mut problems);
    check_identity(messages, &mut problems);
    check_pairs(messages, &mut problems);
    let root = Path::root("messages");
    let citations = citation::ids_of(messages);
    for (index, message) in messages.elements().enumerate() {
        let path = root.index(index);
        check_arguments(message, &path, &mut problems);
        check_anchors(message, &path, &citations, &mut problems);
        each_text(message, &path, &mut |text, path| check_binary(text, path, &mut problems));
        check_media(message, &path, model, &mut problems);
    }
    problems.finish()
}

// The fields of a message that several checks read.

/// Calls `visit` with the text of a message: its content, or the text of each part.
fn each_text(message: Node<'_>, path: &Path<'_>, visit: &mut dyn FnMut(&str, &Path<'_>)) {
    let Some(content) = message.get("content") else { return };
    let path = path.key("content");
    if let Some(text) = content.as_str() {
        visit(text, &path);
    }
    for (index, part) in content.elements().enumerate() {
        for key in ["text", "refusal"] {
            if let Some(text) = part.get_str(key) {
                visit(text, &path.index(index).key(key));
            }
        }
    }
}

/// Returns the role of a message.
fn role(message: Node<'_>) -> &str {
    message.get_str("role").unwrap_or_default()
}

/// Returns the tool calls of a message.
fn calls(message: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    message.get("tool_calls").into_iter().flat_map(Node::elements)
}

// Identifiers are unique, and speakers have names.

fn check_identity(messages: Node<'_>, problems: &mut Problems) {
    check_ids(messages, problems);
    check_names(messages, "user", problems);
    check_names(messages, "assistant", problems);
    let root = Path::root("messages");
    for (index, message) in messages.elements().enumerate() {
        if role(message) == "developer" {
            problems.add(&root.index(index).key("role"), &ROLE, "`developer` is read as `system`");
        }
    }
}

fn check_ids(messages: Node<'_>, problems: &mut Problems) {
    let root = Path::root("messages");
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, message) in messages.elements().enumerate() {
        let Some(id) = message.get_str("id") else { continue };
        match seen.get(id) {
            Some(first) => {
                let message = format!("`{}` is also the id of messages[{first}]", shown(id));
                problems.add(&root.index(index).key("id"), &MESSAGE_ID, message);
            }
            None => {
                seen.insert(id, index);
            }
        }
    }
}

/// Several names in one role show that several speakers share it.
fn check_names(messages: Node<'_>, wanted: &str, problems: &mut Problems) {
    let speakers: Vec<(usize, Node<'_>)> =
        messages.elements().enumerate().filter(|(_, message)| role(*message) == wanted).collect();
    let mut names = speakers.iter().filter_map(|(_, message)| message.get_str("name"));
    let Some(first) = names.next() else { return };
    let second = names.find(|name| *name != first);
    let (rule, what) = match second {
        Some(second) => (&NAME, format!("missing; `{}` and `{}` speak here", shown(first), shown(second))),
        None if wanted == "assistant" => {
            (&NAME_UNCLEAR, format!("missing; `{}` speaks here too", shown(first)))
        }
        None => return,
    };
    let root = Path::root("messages");
    for (index, message) in speakers {
        if message.get("name").is_none_or(Node::is_null) {
            problems.add(&root.index(index).key("name"), rule, what.as_str());
        }
    }
}

// Anchors in the text of an assistant refer to citations (appendix A.4.2).

fn check_anchors(message: Node<'_>, path: &Path<'_>, citations: &HashSet<&str>, problems: &mut Problems) {
    if role(message) != "assistant" {
        return;
    }
    each_text(message, path, &mut |text, path| {
        for id in citation::anchor_ids(text).filter(|id| !citations.contains(id)) {
            problems.add(
                path,
                &CITATION,
                format!("the anchor `{}` has no entry in a citation map", shown(id)),
            );
        }
    });
}

// `arguments` is a string that contains a JSON object.

fn check_arguments(message: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let path = path.key("tool_calls");
    for (index, call) in calls(message).enumerate() {
        let arguments = call.get("function").and_then(|function| function.get("arguments"));
        if let Some(text) = arguments.and_then(Node::as_str) {
            check_text(text, &path.index(index).key("function").key("arguments"), problems);
        }
    }
}

fn check_text(text: &str, path: &Path<'_>, problems: &mut Problems) {
    match find_duplicate(text) {
        Err(message) => problems.add(path, &ARGUMENTS_JSON, message),
        Ok(Some(key)) => problems.add(path, &ARGUMENTS_KEY, format!("the key `{key}` occurs more than once")),
        Ok(None) => {}
    }
}

/// Returns the path of the first key that occurs more than once, or describes why the text is not a JSON object.
fn find_duplicate(text: &str) -> Result<Option<String>, String> {
    if text.trim().is_empty() {
        return Err("the text is empty, expected a JSON object".to_owned());
    }
    let mut parser = Parser::strict(Limits::default());
    let mut duplicate = None;
    let mut sink = |event: Event<'_>| {
        if matches!(event.kind, EventKind::Replaced) && duplicate.is_none() {
            duplicate = Some(event.path.to_string());
        }
    };
    let read = parser.push(text.as_bytes(), &mut sink).and_then(|()| parser.finish(&mut sink));
    if let Err(error) = read {
        let is_truncated = error.offset() >= text.trim_end().len();
        let what = if is_truncated { "the JSON is truncated" } else { "not JSON" };
        return Err(format!("{what}: {}, at byte {}", error.kind(), error.offset()));
    }
    match parser.root().map(Node::kind) {
        Some(Kind::Object) => Ok(duplicate),
        kind => Err(format!("found {}, expected a JSON object", kind.unwrap_or(Kind::Null))),
    }
}

// Parts with media: images by URL, frames instead of video, audio as base64.

/// The parts that a model accepts in addition to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSupport {
    /// The name of the model in messages, `mistral/mistral-large-latest`.
    pub model: String,
    /// Whether it accepts images.
    pub images: bool,
    /// Whether it fetches images by URL.
    pub image_urls: bool,
    /// Whether it accepts audio.
    pub audio: bool,
    /// Whether it accepts documents.
    pub documents: bool,
}

fn check_media(message: Node<'_>, path: &Path<'_>, model: Option<&PartSupport>, problems: &mut Problems) {
    let path = path.key("content");
    let parts = message.get("content").into_iter().flat_map(Node::elements);
    for (index, part) in parts.enumerate() {
        let path = path.index(index);
        match part.get_str("type") {
            Some("image_url") => check_image(part, &path, problems),
            Some("input_audio") => check_audio(part, &path, problems),
            _ => {}
        }
        if let Some(reason) = model.and_then(|model| model.refuses(part)) {
            problems.add(&path, &PART_MODEL, reason);
        }
    }
}

/// Extensions of files that are not images.
const VIDEOS: [&str; 7] = [".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v", ".mpeg"];

fn check_image(part: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let Some(url) = part.get("image_url").and_then(|image| image.get_str("url")) else { return };
    let path = path.key("image_url");
    let path = path.key("url");
    if let Some((media_type, data)) = data_url(url) {
        if media_type.starts_with("image/") {
            let message = format!("the image is inline, {} bytes of base64", data.len());
            problems.add(&path, &IMAGE_INLINE, message);
        } else {
            problems.add(&path, &IMAGE_TYPE, format!("found {}, expected an image", shown(media_type)));
        }
        return;
    }
    let file = url.split(['?', '#']).next().unwrap_or_default();
    let start = file.len().saturating_sub(5);
    let end = file.get(start..).unwrap_or_default().to_ascii_lowercase();
    if let Some(extension) = VIDEOS.iter().find(|extension| end.ends_with(**extension)) {
        problems.add(&path, &IMAGE_TYPE, format!("found a video (`{extension}`), expected an image"));
    }
}

fn check_audio(part: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let Some(audio) = part.get("input_audio") else { return };
    let path = path.key("input_audio");
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let data = audio.get_str("data").unwrap_or_default();
    if let Some(at) = data.bytes().position(|byte| !is_base64(byte)) {
        problems.add(
            &path.key("data"),
            &AUDIO_DATA,
            format!("found a character at byte {at} that is not base64"),
        );
    }
    let format = audio.get_str("format").unwrap_or_default();
    let is_raw = ["pcm", "l16", "raw"].iter().any(|raw| format.starts_with(raw));
    if is_raw && audio.get("sample_rate").is_none_or(Node::is_null) {
        problems.add(
            &path.key("sample_rate"),
            &AUDIO_RATE,
            format!("missing; {} has no header", shown(format)),
        );
    }
}

impl PartSupport {
    /// Returns why the model refuses a part.
    fn refuses(&self, part: Node<'_>) -> Option<String> {
        let model = &self.model;
        match part.get_str("type")? {
            "image_url" if !self.images => Some(format!("{model} accepts no images")),
            "image_url" if !self.image_urls => {
                let url = part.get("image_url")?.get_str("url")?;
                data_url(url).is_none().then(|| format!("{model} accepts images only as base64"))
            }
            "input_audio" if !self.audio => Some(format!("{model} accepts no audio")),
            "file" if !self.documents => Some(format!("{model} accepts no files")),
            _ => None,
        }
    }
}

// Text contains no binary data (appendix A.9).

fn check_binary(text: &str, path: &Path<'_>, problems: &mut Problems) {
    if let Some(what) = find(text) {
        problems.add(path, &BINARY_TEXT, what);
    }
}

/// The shortest base64 of a file that is recognized by its first bytes.
const MIN_FILE: usize = 256;
/// The shortest base64 that is binary whatever it contains: prose and code have no word of this length.
const MIN_BLOB: usize = 4096;
/// The shortest base64 of audio or video in a `data:` URL.
const MIN_MEDIA: usize = 16;
/// The number of replacement characters from which text is bytes that were decoded as text.
const MIN_REPLACED: usize = 8;

/// Describes the first binary data in text.
fn find(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut replaced = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match CLASSES.get(usize::from(*byte)).copied().unwrap_or(Class::Text) {
            Class::Base64 => continue,
            Class::Control => return Some(format!("found the control character U+{byte:04X} at byte {at}")),
            Class::Text => {
                replaced += usize::from(*byte == 0xef && bytes.get(at..at + 3) == Some(b"\xef\xbf\xbd"));
            }
        }
        if at - start >= MIN_MEDIA
            && let Some(what) = describe(text, start, at)
        {
            return Some(what);
        }
        start = at + 1;
    }
    let is_decoded = replaced >= MIN_REPLACED && replaced * 8 >= text.chars().count();
    match bytes.len() - start >= MIN_MEDIA {
        _ if is_decoded => Some(format!("found {replaced} replacement characters: the bytes are not text")),
        true => describe(text, start, bytes.len()),
        false => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A character of base64, which most of prose is too.
    Base64,
    /// A control character that text does not contain.
    Control,
    Text,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Text; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::indexing_slicing, reason = "in a constant, and below the length")]
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        {
            classes[byte] = class(byte as u8);
        }
        byte += 1;
    }
    classes
};

const fn class(byte: u8) -> Class {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'-' | b'_' | b'=' => Class::Base64,
        // Tab, line breaks, form feed, and what terminals print: bell, backspace, escape.
        b'\t' | b'\n' | b'\r' | 0x0c | 0x07 | 0x08 | 0x1b => Class::Text,
        0..=0x1f => Class::Control,
        _ => Class::Text,
    }
}

/// The first characters of the base64 of common files.
const FILES: [(&str, &str); 11] = [
    ("iVBORw0KGgo", "a PNG image"),
    ("/9j/", "a JPEG image"),
    ("R0lGOD", "a GIF image"),
    ("UklGR", "a WebP image, a WAV or an AVI file"),
    ("JVBERi0", "a PDF"),
    ("UEsDB", "a ZIP archive or an office document"),
    ("SUQz", "an MP3 file"),
    ("T2dnUw", "an Ogg file"),
    ("GkXfo", "a WebM or Matroska file"),
    ("ZkxhQ", "a FLAC file"),
    ("H4sI", "a gzip archive"),
];

/// Describes a run of base64 if it is binary data.
fn describe(text: &str, start: usize, end: usize) -> Option<String> {
    let run = text.get(start..end)?;
    // Images of a few pixels are written into prose and code, but audio and video never are.
    if let Some(media_type) = data_url_before(text, start)
        && (run.len() >= MIN_FILE || media_type.starts_with("audio/") || media_type.starts_with("video/"))
    {
        return Some(format!("found a `data:` URL of {media_type} at byte {start}"));
    }
    if run.len() < MIN_FILE {
        return None;
    }
    let file = FILES.iter().find(|(prefix, _)| run.starts_with(prefix));
    if let Some((_, what)) = file {
        return Some(format!("found base64 of {what} at byte {start}"));
    }
    // The second box of an MP4 file: its size, then `ftyp`.
    if run.get(6..10) == Some("Z0eX") {
        return Some(format!("found base64 of an MP4 file at byte {start}"));
    }
    let tests = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit];
    let is_mixed = tests.iter().all(|test| run.as_bytes().iter().any(test));
    (run.len() >= MIN_BLOB && is_mixed)
        .then(|| format!("found {} bytes of base64 at byte {start}", run.len()))
}

/// Returns the media type of a `data:` URL whose base64 starts at `start`.
fn data_url_before(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.strip_suffix(";base64,")?;
    let from = before.len().saturating_sub(MAX_TYPE);
    let near = before.char_indices().rev().take_while(|(at, _)| *at >= from).last().map(|(at, _)| at)?;
    let (_, media_type) = before.get(near..)?.rsplit_once("data:")?;
    let is_type = media_type.bytes().all(|byte| byte.is_ascii_graphic());
    is_type.then_some(media_type)
}

/// The maximum number of bytes between `data:` and `;base64,`.
const MAX_TYPE: usize = 100;

// Each tool call has one result, directly after it (appendix A.2.2).

fn check_pairs(messages: Node<'_>, problems: &mut Problems) {
    let all: Vec<Node<'_>> = messages.elements().collect();
    let Assigned { calls, orphans } = assign(&all);
    let repeated = orphans.iter().filter(|orphan| orphan.rule.name == RESULT_REPEATED.name);
    let mut history = History {
        assigned: calls,
        repeated: repeated.map(|orphan| orphan.message).collect(),
        ..History::default()
    };
    // All calls first: a result may be before its call, which is an error of its own.
    for (index, message) in all.iter().enumerate() {
        history.add_calls(index, *message, problems);
    }
    for (index, message) in all.iter().enumerate() {
        history.follow(index, *message, problems);
    }
    history.report_missing(problems);
}

/// The calls of a history.
#[derive(Default)]
struct History<'a> {
    /// The call of each result, by the indexes of their messages.
    assigned: HashMap<usize, Slot>,
    /// The results whose calls have one already.
    repeated: HashSet<usize>,
    calls: Vec<Call<'a>>,
    by_slot: HashMap<Slot, usize>,
    /// The first call with each identifier.
    by_id: HashMap<&'a str, usize>,
    /// The message whose results may follow now.
    open: Option<usize>,
    /// The index of the last result's call in that message.
    last: usize,
}

struct Call<'a> {
    message: usize,
    index: usize,
    id: &'a str,
    name: Option<&'a str>,
    /// Whether no call before it has its identifier.
    is_first: bool,
    result: Option<usize>,
}

impl<'a> History<'a> {
    fn add_calls(&mut self, at: usize, message: Node<'a>, problems: &mut Problems) {
        let root = Path::root("messages");
        let path = root.index(at);
        let is_caller = role(message) == "assistant";
        if !is_caller && calls(message).next().is_some() {
            problems.add(
                &path.key("tool_calls"),
                &CALL_ROLE,
                format!("found in a {} message", shown(role(message))),
            );
        }
        if role(message) != "tool" && message.get("tool_call_id").is_some_and(|id| !id.is_null()) {
            problems.add(
                &path.key("tool_call_id"),
                &CALL_ROLE,
                format!("found in a {} message", shown(role(message))),
            );
        }
        for (index, call) in calls(message).enumerate().filter(|_| is_caller) {
            self.add_call((at, index), call, &path, problems);
        }
    }

    fn add_call(&mut self, slot: Slot, call: Node<'a>, path: &Path<'_>, problems: &mut Problems) {
        let Some(id) = call.get_str("id") else { return };
        let (message, index) = slot;
        let first = self.by_id.get(id).and_then(|first| self.calls.get(*first));
        let reason = match first {
            Some(first) => Some(format!("`{}` is also the id of {}", shown(id), first.path())),
            None => id.is_empty().then(|| "the id is empty".to_owned()),
        };
        let name = call.get("function").and_then(|function| function.get_str("name"));
        self.by_id.entry(id).or_insert(self.calls.len());
        self.by_slot.insert(slot, self.calls.len());
        self.calls.push(Call { message, index, id, name, is_first: reason.is_none(), result: None });
        if let Some(reason) = reason {
            problems.add(&path.key("tool_calls").index(index).key("id"), &CALL_ID, reason);
        }
    }

    fn follow(&mut self, at: usize, message: Node<'a>, problems: &mut Problems) {
        if role(message) != "tool" {
            self.open = calls(message).next().map(|_| at);
            self.last = 0;
            return;
        }
        let root = Path::root("messages");
        let path = root.index(at);
        check_error(message, &path, problems);
        let Some(id) = message.get_str("tool_call_id") else { return };
        let call = self.assigned.get(&at).and_then(|slot| self.by_slot.get(slot)).copied();
        let Some(call) = call.and_then(|call| self.calls.get_mut(call)) else {
            return self.report_orphan(at, id, &path, problems);
        };
        call.result = Some(at);
        if self.open != Some(call.message) {
            let reason = format!(
                "the call `{}` is in messages[{}]; other messages are between",
                shown(id),
                call.message
            );
            problems.add(&path, &RESULT_PLACE, reason);
        } else if call.index < self.last {
            problems.add(&path, &RESULT_ORDER, "the result of a later call is before this one");
        } else {
            self.last = call.index;
        }
        let name = message.get_str("name");
        if let (Some(name), Some(function)) = (name, call.name.filter(|function| Some(*function) != name)) {
            let reason = format!("found `{}`, but `{}` was called", shown(name), shown(function));
            problems.add(&path.key("name"), &RESULT_NAME, reason);
        }
    }

    /// Reports a result that belongs to no call.
    fn report_orphan(&self, at: usize, id: &str, path: &Path<'_>, problems: &mut Problems) {
        let path = path.key("tool_call_id");
        if !self.repeated.contains(&at) {
            return problems.add(&path, &RESULT_UNKNOWN, format!("no call has the id `{}`", shown(id)));
        }
        let first = self.by_id.get(id).and_then(|call| self.calls.get(*call)?.result);
        let reason = match first {
            Some(first) => format!("messages[{first}] is the result of `{}`", shown(id)),
            None => format!("`{}` has a result already", shown(id)),
        };
        problems.add(&path, &RESULT_REPEATED, reason);
    }

    /// Reports the calls without a result. Those with an identifier of another call have that error.
    fn report_missing(&self, problems: &mut Problems) {
        for call in self.calls.iter().filter(|call| call.is_first && call.result.is_none()) {
            let reason = format!("the call `{}` has no result", shown(call.id));
            problems.add(&call.path(), &RESULT_MISSING, reason);
        }
    }
}

impl Call<'_> {
    fn path(&self) -> String {
        format!("messages[{}].tool_calls[{}]", self.message, self.index)
    }
}

/// A result with the status `error` has the members that the model needs to try again.
fn check_error(message: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let content = message.get("content");
    let text = match content.and_then(Node::as_str) {
        Some(text) => Some(text),
        None => content.and_then(|parts| parts.at(0)?.get_str("text")),
    };
    // Results can be long, and most report no error. Only one that may do so is parsed.
    let Some(text) = text.filter(|text| text.contains("\"error\"")) else { return };
    let Ok(value) = cog_json::Value::parse(text) else { return };
    if value.get_str("status") != Some("error") {
        return;
    }
    for key in ["error_type", "message"] {
        if value.get_str(key).is_none_or(str::is_empty) {
            let reason = format!("the error has no `{key}`");
            problems.add(&path.key("content"), &RESULT_ERROR, reason);
        }
    }
}

#[cfg(test)]
mod tests;
