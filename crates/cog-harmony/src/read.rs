//! From JSON to messages, with every fault told.

use cog_json::{Kind, Node};

use crate::{
    AudioPart, Conversation, Detail, ImagePart, Message, Part, Role, TextPart, ToolCall, VideoFrame,
};

/// What is wrong with a message: where, against which rule, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, `messages[0].content[1].image_url.url`.
    pub path: String,
    /// The rule in a word: `required`, `type`, `enum`.
    pub rule: &'static str,
    /// What was found and what is allowed.
    pub message: String,
}

pub(crate) fn conversation(node: Node<'_>) -> Result<Conversation, Vec<Problem>> {
    let mut faults = Faults::default();
    if node.kind() != Kind::Array {
        faults.wrong_type("messages", node, "an array of messages");
    }
    let messages = node
        .elements()
        .enumerate()
        .filter_map(|(index, message)| message_of(message, &format!("messages[{index}]"), &mut faults));
    let messages = messages.collect();
    faults.or(Conversation(messages))
}

pub(crate) fn message(node: Node<'_>, path: &str) -> Result<Message, Vec<Problem>> {
    let mut faults = Faults::default();
    match message_of(node, path, &mut faults) {
        Some(message) => faults.or(message),
        None => Err(faults.0),
    }
}

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<Problem>);

impl Faults {
    fn add(&mut self, path: impl Into<String>, rule: &'static str, message: impl Into<String>) {
        self.0.push(Problem { path: path.into(), rule, message: message.into() });
    }

    fn wrong_type(&mut self, path: &str, found: Node<'_>, expected: &str) {
        self.add(path, "type", format!("found {}, expected {expected}", found.kind()));
    }

    fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// An object under reading: looks up fields, tells what is missing or of another type.
struct Fields<'a, 'f> {
    node: Node<'a>,
    path: &'f str,
    faults: &'f mut Faults,
}

impl<'a> Fields<'a, '_> {
    /// A field by its reader; one that is there and does not read is a fault.
    fn optional<T>(&mut self, key: &str, expected: &str, read: fn(Node<'a>) -> Option<T>) -> Option<T> {
        let found = self.node.get(key).filter(|found| !found.is_null())?;
        let value = read(found);
        if value.is_none() {
            self.faults.wrong_type(&format!("{}.{key}", self.path), found, expected);
        }
        value
    }

    /// The same for a field that must be there.
    fn required<T>(&mut self, key: &str, expected: &str, read: fn(Node<'a>) -> Option<T>) -> Option<T> {
        if self.node.get(key).is_none_or(Node::is_null) {
            self.missing(key, expected);
            return None;
        }
        self.optional(key, expected, read)
    }

    fn missing(&mut self, key: &str, expected: &str) {
        self.faults.add(format!("{}.{key}", self.path), "required", format!("missing, expected {expected}"));
    }

    fn string(&mut self, key: &str) -> Option<String> {
        self.optional(key, "a string", text)
    }

    fn required_string(&mut self, key: &str) -> Option<String> {
        self.required(key, "a string", text)
    }
}

fn text(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned)
}

fn message_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Option<Message> {
    if node.kind() != Kind::Object {
        faults.wrong_type(path, node, "a message object");
        return None;
    }
    let role = role_of(node, path, faults);
    let content = content_of(node, role, path, faults);
    let tool_calls = tool_calls_of(node, path, faults);
    let mut fields = Fields { node, path, faults };
    let tool_call_id = match role {
        Some(Role::Tool) => fields.required_string("tool_call_id"),
        _ => fields.string("tool_call_id"),
    };
    let id = fields.string("id");
    let name = fields.string("name");
    let created_at = fields.optional("created_at", "Unix time in seconds", Node::as_f64);
    let metadata = fields.optional("metadata", "an object", |node| node.is_object().then(|| node.to_value()));
    Some(Message { id, role: role?, name, created_at, content, tool_calls, tool_call_id, metadata })
}

fn role_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Option<Role> {
    let found = Fields { node, path, faults }.required_string("role")?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == found);
    if role.is_none() {
        let message = format!("`{found}` is not one of user, assistant, system, tool");
        faults.add(format!("{path}.role"), "enum", message);
    }
    role
}

/// Supplement R63: a plain string is accepted everywhere; null only where there may be no content.
fn content_of(node: Node<'_>, role: Option<Role>, path: &str, faults: &mut Faults) -> Vec<Part> {
    let path = format!("{path}.content");
    let may_be_empty = matches!(role, None | Some(Role::Assistant | Role::Tool));
    match node.get("content") {
        Some(content) if content.is_array() => {
            let parts = content.elements().enumerate();
            parts.filter_map(|(index, part)| part_of(part, &format!("{path}[{index}]"), faults)).collect()
        }
        Some(content) if content.is_string() => vec![Part::text(content.as_str().unwrap_or_default())],
        Some(content) if !content.is_null() => {
            faults.wrong_type(&path, content, "an array of parts or a string");
            Vec::new()
        }
        _ if may_be_empty => Vec::new(),
        _ => {
            faults.add(path, "required", "missing, expected an array of parts");
            Vec::new()
        }
    }
}

fn part_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Option<Part> {
    let kind = Fields { node, path, faults }.required_string("type")?;
    match kind.as_str() {
        "text" => {
            let mut fields = Fields { node, path, faults };
            let index = fields.optional("index", "a whole number", Node::as_u64);
            Some(Part::Text(TextPart { text: fields.required_string("text")?, index }))
        }
        "image_url" => image_of(node, path, faults).map(Part::Image),
        "input_audio" => audio_of(node, path, faults).map(Part::Audio),
        _ => {
            let message = format!("`{kind}` is not one of text, image_url, input_audio");
            faults.add(format!("{path}.type"), "enum", message);
            None
        }
    }
}

fn image_of(part: Node<'_>, path: &str, faults: &mut Faults) -> Option<ImagePart> {
    let video = Fields { node: part, path, faults }.optional("video_metadata", "an object", object);
    let video = video.and_then(|video| frame_of(video, &format!("{path}.video_metadata"), faults));
    let node = Fields { node: part, path, faults }.required("image_url", "an object", object)?;
    let path = format!("{path}.image_url");
    let mut fields = Fields { node, path: &path, faults };
    let rotation = fields.optional("rotation", "degrees", Node::as_f64);
    let detail = fields.string("detail").and_then(|found| detail_of(&found, &path, fields.faults));
    let url = Fields { node, path: &path, faults }.required_string("url")?;
    Some(ImagePart { url, detail, rotation, video })
}

fn detail_of(found: &str, path: &str, faults: &mut Faults) -> Option<Detail> {
    let detail = Detail::ALL.into_iter().find(|detail| detail.as_str() == found);
    if detail.is_none() {
        let message = format!("`{found}` is not one of low, high, auto");
        faults.add(format!("{path}.detail"), "enum", message);
    }
    detail
}

fn frame_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Option<VideoFrame> {
    let mut fields = Fields { node, path, faults };
    let video_id = fields.string("video_id");
    let frame_index = fields.optional("frame_index", "a whole number", Node::as_u64);
    let timestamp_sec = fields.required("timestamp_sec", "seconds", Node::as_f64)?;
    Some(VideoFrame { video_id, timestamp_sec, frame_index })
}

fn audio_of(part: Node<'_>, path: &str, faults: &mut Faults) -> Option<AudioPart> {
    let node = Fields { node: part, path, faults }.required("input_audio", "an object", object)?;
    let path = format!("{path}.input_audio");
    let mut fields = Fields { node, path: &path, faults };
    let sample_rate = fields.optional("sample_rate", "samples a second", Node::as_u64);
    let data = fields.required_string("data");
    let format = fields.required_string("format");
    Some(AudioPart { data: data?, format: format?, sample_rate })
}

fn object(node: Node<'_>) -> Option<Node<'_>> {
    node.is_object().then_some(node)
}

fn array(node: Node<'_>) -> Option<Node<'_>> {
    node.is_array().then_some(node)
}

fn tool_calls_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Vec<ToolCall> {
    let array = Fields { node, path, faults }.optional("tool_calls", "an array of calls", array);
    let calls = array.into_iter().flat_map(Node::elements).enumerate();
    calls
        .filter_map(|(index, call)| tool_call_of(call, &format!("{path}.tool_calls[{index}]"), faults))
        .collect()
}

/// Appendix A.2.1 and its section 9: `arguments` is a string; an object there is the usual mistake.
fn tool_call_of(node: Node<'_>, path: &str, faults: &mut Faults) -> Option<ToolCall> {
    let mut fields = Fields { node, path, faults };
    let id = fields.required_string("id");
    if fields.string("type").is_some_and(|kind| kind != "function") {
        fields.faults.add(format!("{path}.type"), "const", "expected `function`");
    }
    let function = fields.required("function", "an object", object)?;
    let path = format!("{path}.function");
    let mut fields = Fields { node: function, path: &path, faults };
    let name = fields.required_string("name");
    let arguments = fields.required("arguments", "a string that holds JSON", text);
    Some(ToolCall { id: id?, name: name?, arguments: arguments? })
}
