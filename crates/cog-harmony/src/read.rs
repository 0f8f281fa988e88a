//! Reads messages from JSON, by hand, so that every problem is reported with its path.

use cog_json::{Kind, Node};

use crate::{
    AudioPart, Conversation, Detail, ImagePart, Message, Part, Role, TextPart, ToolCall, VideoFrame,
};

/// A problem of a message: its path, the rule, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path, such as `messages[0].content[1].image_url.url`.
    pub path: String,
    /// The name of the rule: `required`, `type`, `enum`.
    pub rule: &'static str,
    /// A message with what was found and what is allowed.
    pub message: String,
}

pub(crate) fn conversation(node: Node<'_>) -> Result<Conversation, Vec<Problem>> {
    let mut problems = Problems::default();
    if node.kind() != Kind::Array {
        problems.wrong_type("messages", node, "an array of messages");
    }
    let messages = node
        .elements()
        .enumerate()
        .filter_map(|(index, message)| read_message(message, &format!("messages[{index}]"), &mut problems));
    let messages = messages.collect();
    problems.or(Conversation(messages))
}

pub(crate) fn message(node: Node<'_>, path: &str) -> Result<Message, Vec<Problem>> {
    let mut problems = Problems::default();
    match read_message(node, path, &mut problems) {
        Some(message) => problems.or(message),
        None => Err(problems.0),
    }
}

/// The problems found so far.
#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
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

/// Reads the fields of an object, and records those that are missing or have a wrong type.
struct Fields<'a, 'f> {
    node: Node<'a>,
    path: &'f str,
    problems: &'f mut Problems,
}

impl<'a> Fields<'a, '_> {
    /// Reads a field if it is present.
    fn optional<T>(&mut self, key: &str, expected: &str, read: fn(Node<'a>) -> Option<T>) -> Option<T> {
        let found = self.node.get(key).filter(|found| !found.is_null())?;
        let value = read(found);
        if value.is_none() {
            self.problems.wrong_type(&format!("{}.{key}", self.path), found, expected);
        }
        value
    }

    /// Reads a field that must be present.
    fn required<T>(&mut self, key: &str, expected: &str, read: fn(Node<'a>) -> Option<T>) -> Option<T> {
        if self.node.get(key).is_none_or(Node::is_null) {
            self.missing(key, expected);
            return None;
        }
        self.optional(key, expected, read)
    }

    fn missing(&mut self, key: &str, expected: &str) {
        self.problems.add(
            format!("{}.{key}", self.path),
            "required",
            format!("missing, expected {expected}"),
        );
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

fn read_message(node: Node<'_>, path: &str, problems: &mut Problems) -> Option<Message> {
    if node.kind() != Kind::Object {
        problems.wrong_type(path, node, "a message object");
        return None;
    }
    let role = read_role(node, path, problems);
    let content = read_content(node, role, path, problems);
    let tool_calls = read_tool_calls(node, path, problems);
    let mut fields = Fields { node, path, problems };
    let tool_call_id = match role {
        Some(Role::Tool) => fields.required_string("tool_call_id"),
        _ => fields.string("tool_call_id"),
    };
    let id = fields.string("id");
    let name = fields.string("name");
    let created_at = fields.optional("created_at", "Unix time in seconds", Node::as_f64);
    let metadata = fields.optional("metadata", "an object", |node| node.is_object().then(|| node.to_value()));
    let reasoning = None;
    Some(Message {
        id,
        role: role?,
        name,
        created_at,
        content,
        tool_calls,
        tool_call_id,
        metadata,
        reasoning,
    })
}

fn read_role(node: Node<'_>, path: &str, problems: &mut Problems) -> Option<Role> {
    let found = Fields { node, path, problems }.required_string("role")?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == found);
    if role.is_none() {
        let message = format!("`{found}` is not one of user, assistant, system, tool");
        problems.add(format!("{path}.role"), "enum", message);
    }
    role
}

/// A plain string is accepted in every role, null only where content is optional (ruling R63).
fn read_content(node: Node<'_>, role: Option<Role>, path: &str, problems: &mut Problems) -> Vec<Part> {
    let path = format!("{path}.content");
    let may_be_empty = matches!(role, None | Some(Role::Assistant | Role::Tool));
    match node.get("content") {
        Some(content) if content.is_array() => {
            let parts = content.elements().enumerate();
            parts.filter_map(|(index, part)| read_part(part, &format!("{path}[{index}]"), problems)).collect()
        }
        Some(content) if content.is_string() => vec![Part::text(content.as_str().unwrap_or_default())],
        Some(content) if !content.is_null() => {
            problems.wrong_type(&path, content, "an array of parts or a string");
            Vec::new()
        }
        _ if may_be_empty => Vec::new(),
        _ => {
            problems.add(path, "required", "missing, expected an array of parts");
            Vec::new()
        }
    }
}

fn read_part(node: Node<'_>, path: &str, problems: &mut Problems) -> Option<Part> {
    let kind = Fields { node, path, problems }.required_string("type")?;
    match kind.as_str() {
        "text" => {
            let mut fields = Fields { node, path, problems };
            let index = fields.optional("index", "a whole number", Node::as_u64);
            Some(Part::Text(TextPart { text: fields.required_string("text")?, index }))
        }
        "image_url" => read_image(node, path, problems).map(Part::Image),
        "input_audio" => read_audio(node, path, problems).map(Part::Audio),
        _ => {
            let message = format!("`{kind}` is not one of text, image_url, input_audio");
            problems.add(format!("{path}.type"), "enum", message);
            None
        }
    }
}

fn read_image(part: Node<'_>, path: &str, problems: &mut Problems) -> Option<ImagePart> {
    let video = Fields { node: part, path, problems }.optional("video_metadata", "an object", object);
    let video = video.and_then(|video| read_frame(video, &format!("{path}.video_metadata"), problems));
    let node = Fields { node: part, path, problems }.required("image_url", "an object", object)?;
    let path = format!("{path}.image_url");
    let mut fields = Fields { node, path: &path, problems };
    let rotation = fields.optional("rotation", "degrees", Node::as_f64);
    let detail = fields.string("detail").and_then(|found| read_detail(&found, &path, fields.problems));
    let url = Fields { node, path: &path, problems }.required_string("url")?;
    Some(ImagePart { url, detail, rotation, video })
}

fn read_detail(found: &str, path: &str, problems: &mut Problems) -> Option<Detail> {
    let detail = Detail::ALL.into_iter().find(|detail| detail.as_str() == found);
    if detail.is_none() {
        let message = format!("`{found}` is not one of low, high, auto");
        problems.add(format!("{path}.detail"), "enum", message);
    }
    detail
}

fn read_frame(node: Node<'_>, path: &str, problems: &mut Problems) -> Option<VideoFrame> {
    let mut fields = Fields { node, path, problems };
    let video_id = fields.string("video_id");
    let frame_index = fields.optional("frame_index", "a whole number", Node::as_u64);
    let timestamp_sec = fields.required("timestamp_sec", "seconds", Node::as_f64)?;
    Some(VideoFrame { video_id, timestamp_sec, frame_index })
}

fn read_audio(part: Node<'_>, path: &str, problems: &mut Problems) -> Option<AudioPart> {
    let node = Fields { node: part, path, problems }.required("input_audio", "an object", object)?;
    let path = format!("{path}.input_audio");
    let mut fields = Fields { node, path: &path, problems };
    let sample_rate = fields.optional("sample_rate", "samples per second", Node::as_u64);
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

fn read_tool_calls(node: Node<'_>, path: &str, problems: &mut Problems) -> Vec<ToolCall> {
    let array = Fields { node, path, problems }.optional("tool_calls", "an array of calls", array);
    let calls = array.into_iter().flat_map(Node::elements).enumerate();
    calls
        .filter_map(|(index, call)| read_tool_call(call, &format!("{path}.tool_calls[{index}]"), problems))
        .collect()
}

/// `arguments` is a string (appendix A.2.1); an object is a common mistake (appendix A.9).
fn read_tool_call(node: Node<'_>, path: &str, problems: &mut Problems) -> Option<ToolCall> {
    let mut fields = Fields { node, path, problems };
    let id = fields.required_string("id");
    if fields.string("type").is_some_and(|kind| kind != "function") {
        fields.problems.add(format!("{path}.type"), "const", "expected `function`");
    }
    let function = fields.required("function", "an object", object)?;
    let path = format!("{path}.function");
    let mut fields = Fields { node: function, path: &path, problems };
    let name = fields.required_string("name");
    let arguments = fields.required("arguments", "a string that contains JSON", text);
    Some(ToolCall { id: id?, name: name?, arguments: arguments?, signature: None })
}
