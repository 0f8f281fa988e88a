//! Reads messages from JSON, by hand, so that every problem is reported with its path.

use std::collections::HashMap;

use cog_json::{Kind, Node, Value};

use crate::{
    AudioPart, Conversation, Detail, FilePart, FileReferencePart, FileSource, ImagePart, Message, NativePart,
    Part, Problem, Reasoning, RefusalPart, Role, TextPart, ToolCall, VideoFrame,
    other::{Inner, other},
    problem::{Path, Problems},
    rules::{ARGUMENTS_TYPE, ENUM, REQUIRED, TYPE},
    wire::data_url,
};

impl Conversation {
    /// Reads an array of messages.
    ///
    /// # Errors
    /// All problems of all messages.
    pub fn read(node: Node<'_>) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let conversation = conversation(node, &mut problems);
        problems.or(conversation)
    }
}

impl Message {
    /// Reads and checks a single message. `path` is its path in the document, such as `messages[0]`.
    ///
    /// # Errors
    /// All problems of the message, not only the first.
    pub fn read(node: Node<'_>, path: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        match message(node, &Path::root(path), &mut problems) {
            Some(message) => problems.or(message),
            None => Err(problems.finish()),
        }
    }
}

/// Reads the messages that can be read, and records the problems of all of them.
pub(crate) fn conversation(node: Node<'_>, problems: &mut Problems) -> Conversation {
    let root = Path::root("messages");
    if node.kind() != Kind::Array {
        problems.add(&root, &TYPE, format!("found {}, expected an array of messages", node.kind()));
    }
    let mut functions = HashMap::new();
    let messages = node.elements().enumerate().filter_map(|(index, node)| {
        let mut message = message(node, &root.index(index), problems)?;
        number_function_call(node, &mut message, &mut functions);
        Some(message)
    });
    Conversation(messages.collect())
}

/// Gives a `function_call` and its result, which have only the name of the function, an identifier of their own.
fn number_function_call<'a>(node: Node<'a>, message: &mut Message, calls: &mut HashMap<&'a str, usize>) {
    let call = node.get("function_call").and_then(|call| call.get_str("name"));
    let result = node.get_str("name").filter(|_| node.get_str("role") == Some(FUNCTION));
    let Some(name) = call.or(result) else { return };
    let count = calls.entry(name).or_default();
    *count += usize::from(call.is_some());
    if *count > 1 {
        let id = format!("{name}_{count}");
        match message.tool_calls.last_mut() {
            Some(last) => last.id = id,
            None => message.tool_call_id = Some(id),
        }
    }
}

/// The role of a result in OpenAI's older form.
const FUNCTION: &str = "function";

/// The members of a message that the type names.
const MESSAGE: [&str; 9] =
    ["id", "role", "name", "created_at", "content", "tool_calls", "tool_call_id", "metadata", "reasoning"];

pub(crate) fn message(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Message> {
    if node.kind() != Kind::Object {
        problems.add(path, &TYPE, format!("found {}, expected a message object", node.kind()));
        return None;
    }
    let mut fields = Fields { node, path, problems };
    let role = role(&mut fields);
    let mut content = content(node, role, &path.key("content"), fields.problems);
    // OpenAI has the refusal of an answer next to its content, which may be null.
    let refusal = refusal(node).map(str::to_owned);
    content.extend(refusal.map(|refusal| Part::Refusal(RefusalPart { refusal, other: None })));
    let mut tool_calls = tool_calls(&mut fields);
    tool_calls.extend(function_call(&mut fields));
    let tool_call_id = match role {
        Some(Role::Tool) if node.get_str("role") == Some(FUNCTION) => fields.required_string("name"),
        Some(Role::Tool) => fields.required_string("tool_call_id"),
        _ => fields.string("tool_call_id"),
    };
    let reasoning = node.get("reasoning").and_then(reasoning);
    let other = unknown_members(node, reasoning.is_some());
    // Each field records its own problems, also where the role is unknown, so that all of them are reported at once.
    let id = fields.string("id");
    let name = fields.string("name");
    let created_at = fields.optional("created_at", "Unix time in seconds", Node::as_f64);
    let metadata = fields.optional("metadata", "an object", |node| node.is_object().then(|| node.to_value()));
    let role = role?;
    Some(Message {
        id,
        role,
        name,
        created_at,
        content,
        tool_calls,
        tool_call_id,
        metadata,
        reasoning,
        other,
    })
}

/// Returns the members that a message does not name. `developer` is among them, and a `reasoning` of another form; a refusal and a
/// `function_call` are not, because they are a part and a call.
fn unknown_members(node: Node<'_>, has_reasoning: bool) -> Option<Value> {
    let is_developer = node.get_str("role") == Some("developer");
    let has_other_form = !has_reasoning && node.get("reasoning").is_some();
    let mut known = MESSAGE.to_vec();
    known.retain(|key| !(*key == "role" && is_developer || *key == "reasoning" && has_other_form));
    known.extend(refusal(node).map(|_| "refusal"));
    known.extend(node.get("function_call").filter(|call| call.is_object()).map(|_| "function_call"));
    other(node, &known, &[])
}

fn refusal(node: Node<'_>) -> Option<&str> {
    node.get_str("refusal").filter(|refusal| !refusal.is_empty())
}

fn role(fields: &mut Fields<'_, '_>) -> Option<Role> {
    let found = fields.required_text("role")?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == found);
    match found {
        "developer" => return Some(Role::System),
        FUNCTION => return Some(Role::Tool),
        _ => {}
    }
    if role.is_none() {
        let message = format!("`{}` is not one of user, assistant, system, tool", shown(found));
        fields.problems.add(&fields.path.key("role"), &ENUM, message);
    }
    role
}

/// A plain string is accepted in every role, null only where content is optional (ruling R63).
fn content(node: Node<'_>, role: Option<Role>, path: &Path<'_>, problems: &mut Problems) -> Vec<Part> {
    let may_be_empty = matches!(role, None | Some(Role::Assistant | Role::Tool));
    match node.get("content") {
        Some(content) if content.is_array() => {
            let parts = content.elements().enumerate();
            parts.filter_map(|(index, node)| part(node, &path.index(index), problems)).collect()
        }
        Some(content) if content.is_string() => vec![Part::text(content.as_str().unwrap_or_default())],
        Some(content) if !content.is_null() => {
            problems.add(
                path,
                &TYPE,
                format!("found {}, expected an array of parts or a string", content.kind()),
            );
            Vec::new()
        }
        _ if may_be_empty => Vec::new(),
        _ => {
            problems.add(path, &REQUIRED, "missing, expected an array of parts");
            Vec::new()
        }
    }
}

/// Reads reasoning in the form of this format; members of the same name in other forms stay unknown members.
fn reasoning(node: Node<'_>) -> Option<Reasoning> {
    let provider = node.get_str("provider")?;
    let items = node.get("items").filter(|items| items.is_array() && node.len() == 2)?;
    Some(Reasoning { provider: provider.to_owned(), items: items.elements().map(Node::to_value).collect() })
}

fn tool_calls(fields: &mut Fields<'_, '_>) -> Vec<ToolCall> {
    let calls = fields.optional("tool_calls", "an array of calls", array);
    let path = fields.path.key("tool_calls");
    let calls = calls.into_iter().flat_map(Node::elements).enumerate();
    calls.filter_map(|(index, call)| tool_call(call, &path.index(index), fields.problems)).collect()
}

/// `arguments` is a string (appendix A.2.1); an object is a common mistake (appendix A.9).
fn tool_call(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<ToolCall> {
    let mut fields = Fields { node, path, problems };
    let id = fields.required_string("id");
    let signature = fields.string("signature");
    match fields.text("type") {
        None | Some("function") => {}
        Some(ToolCall::CUSTOM) => return custom_call(id?, &mut fields),
        Some(_) => fields.problems.add(&path.key("type"), &ENUM, "expected `function` or `custom`"),
    }
    let function = fields.required("function", "an object", object)?;
    let path = path.key("function");
    let mut fields = Fields { node: function, path: &path, problems: fields.problems };
    let name = fields.required_string("name");
    let arguments = match function.get("arguments") {
        Some(found) if !found.is_null() && !found.is_string() => {
            let message = format!("found {}, expected a string that contains JSON", found.kind());
            fields.problems.add(&path.key("arguments"), &ARGUMENTS_TYPE, message);
            None
        }
        _ => fields.required("arguments", "a string that contains JSON", text),
    };
    let inner = Inner { key: "function", object: Some(function), known: &["name", "arguments"] };
    let other = other(node, &["id", "type", "function", "signature"], &[inner]);
    Some(ToolCall { id: id?, name: name?, arguments: arguments?.to_owned(), signature, other })
}

/// Reads `custom {name, input}` of OpenAI: a call whose argument is a string.
fn custom_call(id: String, fields: &mut Fields<'_, '_>) -> Option<ToolCall> {
    let custom = fields.required(ToolCall::CUSTOM, "an object", object)?;
    let path = fields.path.key(ToolCall::CUSTOM);
    let mut fields = Fields { node: custom, path: &path, problems: fields.problems };
    let name = fields.required_string("name");
    let input = fields.required("input", "a string", text);
    Some(ToolCall::custom(id, name?, input?))
}

/// Reads `function_call` of OpenAI's older form. Its result has only the name of the function.
fn function_call(fields: &mut Fields<'_, '_>) -> Option<ToolCall> {
    let call = fields.node.get("function_call").filter(|call| call.is_object())?;
    let path = fields.path.key("function_call");
    let mut fields = Fields { node: call, path: &path, problems: fields.problems };
    let name = fields.required_string("name")?;
    let arguments = fields.required("arguments", "a string that contains JSON", text)?;
    Some(ToolCall::new(name.clone(), name, arguments))
}

/// The maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 40;

/// Returns the start of a value, for a message.
pub(crate) fn shown(text: &str) -> &str {
    text.char_indices().nth(MAX_SHOWN).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

// Reads the fields of an object, and records those that are missing or have a wrong type.

struct Fields<'a, 'p> {
    node: Node<'a>,
    path: &'p Path<'p>,
    problems: &'p mut Problems,
}

impl<'a> Fields<'a, '_> {
    /// Reads a field if it is present.
    fn optional<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        let found = self.node.get(key).filter(|found| !found.is_null())?;
        let value = read(found);
        if value.is_none() {
            let message = format!("found {}, expected {expected}", found.kind());
            self.problems.add(&self.path.key(key), &TYPE, message);
        }
        value
    }

    /// Reads a field that must be present.
    fn required<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl FnOnce(Node<'a>) -> Option<T>,
    ) -> Option<T> {
        if self.node.get(key).is_none_or(Node::is_null) {
            self.problems.add(&self.path.key(key), &REQUIRED, format!("missing, expected {expected}"));
            return None;
        }
        self.optional(key, expected, read)
    }

    fn text(&mut self, key: &str) -> Option<&'a str> {
        self.optional(key, "a string", text)
    }

    fn string(&mut self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    fn required_text(&mut self, key: &str) -> Option<&'a str> {
        self.required(key, "a string", text)
    }

    fn required_string(&mut self, key: &str) -> Option<String> {
        self.required_text(key).map(str::to_owned)
    }
}

fn text(node: Node<'_>) -> Option<&str> {
    node.as_str()
}

fn object(node: Node<'_>) -> Option<Node<'_>> {
    node.is_object().then_some(node)
}

fn array(node: Node<'_>) -> Option<Node<'_>> {
    node.is_array().then_some(node)
}

// The parts of a message.

/// The types of parts, in the order of the documentation.
const KINDS: &str = "text, image_url, input_audio, file, refusal, native";

fn part(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<Part> {
    if !node.is_object() {
        problems.add(path, &TYPE, format!("found {}, expected a part", node.kind()));
        return None;
    }
    let mut fields = Fields { node, path, problems };
    let kind = fields.required_text("type")?;
    match kind {
        "text" => text_part(&mut fields).map(Part::Text),
        "image_url" => image(&mut fields).map(Part::Image),
        "input_audio" => audio(&mut fields).map(Part::Audio),
        "file" => file(&mut fields),
        "refusal" => {
            let refusal = fields.required_string("refusal")?;
            Some(Part::Refusal(RefusalPart { refusal, other: other(node, &["type", "refusal"], &[]) }))
        }
        "native" => native(&mut fields).map(Part::Native),
        _ => {
            let message = format!("`{}` is not one of {KINDS}", shown(kind));
            fields.problems.add(&path.key("type"), &ENUM, message);
            None
        }
    }
}

fn text_part(fields: &mut Fields<'_, '_>) -> Option<TextPart> {
    let index = fields.optional("index", "a whole number", Node::as_u64);
    let text = fields.required_string("text")?;
    Some(TextPart { text, index, other: other(fields.node, &["type", "text", "index"], &[]) })
}

fn image(fields: &mut Fields<'_, '_>) -> Option<ImagePart> {
    let part = fields.node;
    let metadata = fields.optional("video_metadata", "an object", object);
    let video = metadata.and_then(|node| frame(node, &fields.path.key("video_metadata"), fields.problems));
    let node = fields.required("image_url", "an object", object)?;
    let path = fields.path.key("image_url");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let rotation = fields.optional("rotation", "degrees", Node::as_f64);
    let name = fields.text("detail");
    let detail = name.and_then(|name| detail(name, &mut fields));
    let url = fields.required_string("url")?;
    // A level that only OpenAI has stays an unknown member.
    let known: &[&str] = match (name, detail) {
        (Some(_), None) => &["url", "rotation"],
        _ => &["url", "rotation", "detail"],
    };
    let inner = [
        Inner { key: "image_url", object: Some(node), known },
        Inner {
            key: "video_metadata",
            object: metadata,
            known: &["video_id", "timestamp_sec", "frame_index"],
        },
    ];
    let other = other(part, &["type", "image_url", "video_metadata"], &inner);
    Some(ImagePart { url, detail, rotation, video, other })
}

fn detail(name: &str, fields: &mut Fields<'_, '_>) -> Option<Detail> {
    let detail = Detail::from_name(name);
    if detail.is_none() && name != "original" {
        let message = format!("`{}` is not one of low, high, auto", shown(name));
        fields.problems.add(&fields.path.key("detail"), &ENUM, message);
    }
    detail
}

fn frame(node: Node<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<VideoFrame> {
    let mut fields = Fields { node, path, problems };
    let video_id = fields.string("video_id");
    let frame_index = fields.optional("frame_index", "a whole number", Node::as_u64);
    let timestamp_sec = fields.required("timestamp_sec", "seconds", Node::as_f64)?;
    Some(VideoFrame { video_id, timestamp_sec, frame_index })
}

fn audio(fields: &mut Fields<'_, '_>) -> Option<AudioPart> {
    let part = fields.node;
    let node = fields.required("input_audio", "an object", object)?;
    let path = fields.path.key("input_audio");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let sample_rate = fields.optional("sample_rate", "samples per second", Node::as_u64);
    let data = fields.required_string("data");
    let format = fields.required_string("format");
    let inner = Inner { key: "input_audio", object: Some(node), known: &["data", "format", "sample_rate"] };
    let other = other(part, &["type", "input_audio"], &[inner]);
    Some(AudioPart { data: data?, format: format?, sample_rate, other })
}

fn file(fields: &mut Fields<'_, '_>) -> Option<Part> {
    let part = fields.node;
    let node = fields.required("file", "an object", object)?;
    let path = fields.path.key("file");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let filename = fields.string("filename");
    if let Some(url) = fields.text("file_data") {
        let Some((media_type, data)) = data_url(url) else {
            fields.problems.add(&path.key("file_data"), &TYPE, "expected `data:MEDIA/TYPE;base64,…`");
            return None;
        };
        let inner = Inner { key: "file", object: Some(node), known: &["filename", "file_data"] };
        return Some(Part::File(FilePart {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
            filename,
            other: other(part, &["type", "file"], &[inner]),
        }));
    }
    let source = match fields.string("file_id") {
        Some(id) => FileSource::Id(id),
        None => FileSource::Url(
            fields
                .required("url", "`file_data`, `file_id` or `url`", |url| url.as_str().map(str::to_owned))?,
        ),
    };
    let media_type = fields.string("media_type");
    let known: &[&str] = match source {
        FileSource::Id(_) => &["filename", "file_data", "file_id", "media_type"],
        FileSource::Url(_) => &["filename", "file_data", "file_id", "url", "media_type"],
    };
    let other = other(part, &["type", "file"], &[Inner { key: "file", object: Some(node), known }]);
    Some(Part::FileReference(FileReferencePart { source, media_type, filename, other }))
}

fn native(fields: &mut Fields<'_, '_>) -> Option<NativePart> {
    let part = fields.node;
    let node = fields.required("native", "an object", object)?;
    let path = fields.path.key("native");
    let mut fields = Fields { node, path: &path, problems: fields.problems };
    let provider = fields.required_string("provider");
    let item = fields.required("item", "a value", |item| Some(item.to_value()));
    let inner = Inner { key: "native", object: Some(node), known: &["provider", "item"] };
    let other = other(part, &["type", "native"], &[inner]);
    Some(NativePart { provider: provider?, item: item?, other })
}
