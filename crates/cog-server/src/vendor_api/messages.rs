//! From the messages of a chat completion, or the items of a response, to the input of a module.

use cog_json::{Node, Object, Value};
use cog_module::Module;
use cog_run::RunInput;
use cog_schema::Member;
use cog_spec::Code;
use serde_json::json;

use super::{RequestError, is_nothing, request::shown};
use crate::SystemMessages;

/// The type of context that earlier messages become (docs/context.md).
const HISTORY: &str = "conversation_history";

/// What a message may have in addition to its role and content, without a meaning for a module.
const IGNORED: &[&str] = &["name", "annotations"];
/// The same for an item of a response, which a client may send back as it received it.
const IGNORED_OF_ITEM: &[&str] = &["id", "status", "phase"];

/// A message of the user or of the assistant.
pub(super) struct Message {
    role: Role,
    content: Content,
    /// The paths of its role and its content in the request.
    role_param: String,
    content_param: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Also a developer: `instructions` of a response, and messages of these roles.
    System,
    User,
    Assistant,
}

impl Message {
    /// The user's message with this text, from the parameter of this name.
    pub(super) fn user(text: &str, param: &str) -> Self {
        let content = Content { text: Some(text.to_owned()), ..Content::default() };
        Self::new(Role::User, content, param)
    }

    /// The system's message with this content, from the parameter of this name.
    ///
    /// # Errors
    /// The errors of [`Content::read`].
    pub(super) fn system(content: Node<'_>, param: &str) -> Result<Self, RequestError> {
        Ok(Self::new(Role::System, Content::read(content, param)?, param))
    }

    fn new(role: Role, content: Content, param: &str) -> Self {
        let [role_param, content_param] = [param; 2].map(str::to_owned);
        Self { role, content, role_param, content_param }
    }

    /// Reads the messages of a chat completion, or the items of a response.
    ///
    /// # Errors
    /// E1001 to E1004, with the path of the message.
    pub(super) fn read_list(list: Option<Node<'_>>, name: &str) -> Result<Vec<Self>, RequestError> {
        let messages = list.filter(|list| list.is_array()).into_iter().flat_map(|list| list.elements());
        messages
            .enumerate()
            .map(|(index, message)| Self::read(message, &format!("{name}[{index}]"), name == "input"))
            .collect()
    }

    fn read(message: Node<'_>, param: &str, is_item: bool) -> Result<Self, RequestError> {
        let role = role(message, param, is_item)?;
        let [role_param, content_param] = ["role", "content"].map(|key| format!("{param}.{key}"));
        let content = Content::read(message.get("content").unwrap_or(message), &content_param)?;
        Ok(Self { role, content, role_param, content_param })
    }

    /// Returns an earlier message as a turn of the conversation.
    fn into_turn(self) -> Result<serde_json::Value, RequestError> {
        let role = if self.role == Role::User { "user" } else { "assistant" };
        Ok(json!({ "role": role, "content": self.into_text()? }))
    }

    fn into_text(self) -> Result<String, RequestError> {
        match (self.content.text, self.content.files.as_slice()) {
            (Some(text), []) => Ok(text),
            _ => {
                let param = self.content_param;
                let message = format!("`{param}`: only the last message may contain anything else than text");
                Err(RequestError::new(Code::UnsupportedValue, param, message))
            }
        }
    }
}

/// What messages are for a module.
pub(super) struct ModuleInput {
    pub(super) input: RunInput,
    /// The system messages, if they are added to the prompt.
    pub(super) instructions: Option<String>,
}

/// Returns what messages are for a module: the last one is the input, those before it are its `conversation_history`, and system
/// messages go where the operator says. `name` is the parameter with the messages.
///
/// # Errors
/// E1001 to E1004, with the path of the message.
pub(super) fn input(
    messages: Vec<Message>,
    name: &str,
    module: &Module,
    place: &SystemMessages,
) -> Result<ModuleInput, RequestError> {
    let (system, mut messages): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| message.role == Role::System);
    let Some(Message { role, content, role_param, content_param }) = messages.pop() else {
        let message = format!("`{name}` must be an array with at least one message");
        return Err(RequestError::new(Code::MissingRequiredField, name, message));
    };
    if role != Role::User {
        let message = "the last message must be one of the user";
        return Err(RequestError::new(Code::InvalidInput, role_param, message));
    }
    let history = messages.into_iter().map(Message::into_turn).collect::<Result<Vec<_>, _>>()?;
    let mut fields = Object::default();
    let text = content.text.filter(|text| !merge_object(text, &mut fields));
    place_files(content.files, module, &mut fields, &content_param)?;
    if !history.is_empty() {
        accepts_history(module, name)?;
        fields.insert("_context", json!({ HISTORY: history }).into());
    }
    if text.is_some() {
        has_text_field(module, &content_param)?;
    }
    let instructions = place_system(system, place, module, text.is_some(), &mut fields)?;
    let fields = fields.to_value();
    let input = match text {
        Some(text) => RunInput::ArgsWith(text, fields),
        None => RunInput::Json(fields),
    };
    Ok(ModuleInput { input, instructions })
}

/// Puts system messages where the operator says, and returns them if that is the prompt. `has_text` is whether the last message
/// becomes the text field of the input.
fn place_system(
    system: Vec<Message>,
    place: &SystemMessages,
    module: &Module,
    has_text: bool,
    fields: &mut Object,
) -> Result<Option<String>, RequestError> {
    let Some(param) = system.first().map(|message| message.role_param.clone()) else { return Ok(None) };
    let refuse = |message: String, advice: &str| {
        Err(RequestError::new(Code::UnsupportedValue, param, message).suggest(advice))
    };
    let texts = system.into_iter().map(Message::into_text).collect::<Result<Vec<_>, _>>()?;
    let text = texts.join("\n\n");
    match place {
        SystemMessages::Append => Ok(Some(text)),
        SystemMessages::Refuse => refuse(
            "a module has its own prompt, and this server takes no other instructions".to_owned(),
            "Remove the message, or put its text into a field of the input.",
        ),
        SystemMessages::Field(field) => {
            let is_text = has_text && module.contract.args_target() == Ok(field);
            let shape = module.contract.shape("input");
            if shape.is_none_or(|shape| matches!(shape.member(field), Member::Absent)) {
                let message = format!(
                    "`input.{field}` is for system messages, and `{}` has no such field",
                    module.manifest.name
                );
                return refuse(message, "Remove the message.");
            }
            if is_text || fields.get(field).is_some() {
                return refuse(
                    format!("`input.{field}` is for system messages, and the last message has it too"),
                    "Send one of them.",
                );
            }
            fields.insert(field, serde_json::Value::from(text).into());
            Ok(None)
        }
    }
}

/// Returns the role of a message that a module can use.
fn role(message: Node<'_>, param: &str, is_item: bool) -> Result<Role, RequestError> {
    if let Some(kind) =
        message.get("type").and_then(Node::as_str).filter(|kind| is_item && *kind != "message")
    {
        return Err(unsupported(
            param,
            "type",
            format!("`{param}.type`: `{}` is not supported", shown(kind)),
        )
        .suggest("Send messages only: the runtime calls the tools of a module, and no response is stored."));
    }
    let ignored = if is_item { IGNORED_OF_ITEM } else { IGNORED };
    let known =
        |key: &str| ["role", "content"].contains(&key) || ignored.contains(&key) || is_item && key == "type";
    let other = message.members().find(|(key, value)| !known(key) && !is_nothing(*value));
    if let Some((key, _)) = other {
        return Err(unsupported(param, &shown(key), format!("`{param}.{}` is not supported", shown(key))));
    }
    match message.get("role").and_then(Node::as_str) {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system" | "developer") => Ok(Role::System),
        Some(role) => {
            Err(unsupported(param, "role", format!("`{param}.role`: `{}` is not supported", shown(role)))
                .suggest("Use system, user or assistant."))
        }
        None => {
            let message = format!("`{param}.role` must be a string");
            Err(RequestError::new(Code::MissingRequiredField, format!("{param}.role"), message))
        }
    }
}

/// The error of a member of a message that is not supported.
fn unsupported(param: &str, key: &str, message: String) -> RequestError {
    RequestError::new(Code::UnsupportedValue, format!("{param}.{key}"), message)
}

/// Adds the members of text that is a JSON object. Returns false for other text.
fn merge_object(text: &str, fields: &mut Object) -> bool {
    if !text.trim_start().starts_with('{') {
        return false;
    }
    let Ok(object) = Value::parse(text) else { return false };
    *fields = Object::from_node(object.node());
    true
}

/// Puts the files of a message into the media fields of the input, in the order of the schema.
fn place_files(
    files: Vec<serde_json::Value>,
    module: &Module,
    fields: &mut Object,
    param: &str,
) -> Result<(), RequestError> {
    let count = files.len();
    let mut files = files.into_iter();
    for field in module.contract.media_fields() {
        if fields.get(field.name).is_some() || files.len() == 0 {
            continue;
        }
        let value = match field.is_list {
            true => Some(files.by_ref().collect()),
            false => files.next(),
        };
        value.into_iter().for_each(|value| fields.insert(field.name, value.into()));
    }
    if files.len() == 0 {
        return Ok(());
    }
    let name = &module.manifest.name;
    let message = match count - files.len() {
        0 => format!("`{name}` accepts no files"),
        places => format!("`{name}` accepts {places} of these {count} files"),
    };
    Err(RequestError::new(Code::InvalidInput, param, message))
}

fn accepts_history(module: &Module, name: &str) -> Result<(), RequestError> {
    if module.manifest.context.accepted(HISTORY).is_some() {
        return Ok(());
    }
    let message = format!("`{}` reads no earlier messages", module.manifest.name);
    Err(RequestError::new(Code::InvalidInput, name, message).suggest(
        "Send only the last message, or let `context.accepts` of the manifest list conversation_history.",
    ))
}

fn has_text_field(module: &Module, param: &str) -> Result<(), RequestError> {
    let Err(candidates) = module.contract.args_target() else { return Ok(()) };
    let name = &module.manifest.name;
    let message = match candidates.as_slice() {
        [] => format!("the input of `{name}` has no text field"),
        many => format!("the text could be any of these fields of `{name}`: {}", many.join(", ")),
    };
    Err(RequestError::new(Code::InvalidInput, param, message)
        .suggest("Send the input as a JSON object in the content of the message."))
}

// The content of one message: its text and its files.

/// The content of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    /// The text parts, joined.
    pub(super) text: Option<String>,
    /// The files as sources of media (docs/spec/media.md).
    pub(super) files: Vec<serde_json::Value>,
}

impl Content {
    /// Reads the content of a message; `param` is its path in the request.
    ///
    /// # Errors
    /// E1001, E1003 and E1004 with the path of the part.
    pub(super) fn read(content: Node<'_>, param: &str) -> Result<Self, RequestError> {
        if let Some(text) = content.as_str() {
            return Ok(Self { text: Some(text.to_owned()), files: Vec::new() });
        }
        if !content.is_array() {
            let message = format!("`{param}` must be a string or an array of parts");
            return Err(RequestError::new(Code::TypeMismatch, param, message));
        }
        let mut read = Self::default();
        for (index, part) in content.elements().enumerate() {
            read.add(part, &format!("{param}[{index}]"))?;
        }
        Ok(read)
    }

    fn add(&mut self, part: Node<'_>, param: &str) -> Result<(), RequestError> {
        let kind = member(part, "type", param)?;
        match kind {
            "text" | "input_text" => {
                known(part, param, &["type", "text", "cache_control"])?;
                self.add_text(member(part, "text", param)?);
            }
            // A part of an answer that the client sends back.
            "output_text" => {
                known(part, param, &["type", "text", "annotations", "logprobs"])?;
                self.add_text(member(part, "text", param)?);
            }
            "image_url" => self.files.push(image(part, param)?),
            "input_image" => self.files.push(input_image(part, param)?),
            "input_audio" => self.files.push(audio(part, param)?),
            "file" => self.files.push(file(part, param)?),
            "input_file" => self.files.push(input_file(part, param)?),
            "image" | "document" => match block(part, param)? {
                Block::File(source) => self.files.push(source),
                Block::Text(text) => self.add_text(text),
            },
            _ => {
                let message = format!("`{param}.type`: `{}` is not supported", shown(kind));
                return Err(RequestError::new(Code::UnsupportedValue, format!("{param}.type"), message)
                    .suggest(
                        "Use text, image_url, input_audio or file; in a response, input_text, input_image or input_file; \
                         in a message of Anthropic, text, image or document.",
                    ));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        match &mut self.text {
            Some(before) => {
                before.push('\n');
                before.push_str(text);
            }
            None => self.text = Some(text.to_owned()),
        }
    }
}

/// Checks that a part has no other members than these.
fn known(part: Node<'_>, param: &str, keys: &[&str]) -> Result<(), RequestError> {
    match part.members().find(|(key, value)| !keys.contains(key) && !is_nothing(*value)) {
        Some((key, _)) => {
            let param = format!("{param}.{}", shown(key));
            Err(RequestError::new(Code::UnsupportedValue, &param, format!("`{param}` is not supported")))
        }
        None => Ok(()),
    }
}

/// Returns a member that is text.
fn member<'a>(object: Node<'a>, key: &str, param: &str) -> Result<&'a str, RequestError> {
    object.get(key).and_then(Node::as_str).ok_or_else(|| {
        RequestError::new(Code::MissingRequiredField, param, format!("`{param}.{key}` must be a string"))
    })
}

/// Returns the member that has the content of a part, and its path.
fn object<'a>(
    part: Node<'a>,
    key: &str,
    param: &str,
    keys: &[&str],
) -> Result<(Node<'a>, String), RequestError> {
    known(part, param, &["type", key])?;
    let param = format!("{param}.{key}");
    match part.get(key).filter(|value| value.is_object()) {
        Some(value) => known(value, &param, keys).map(|()| (value, param)),
        None => {
            let message = format!("`{param}` must be an object");
            Err(RequestError::new(Code::MissingRequiredField, param, message))
        }
    }
}

fn image(part: Node<'_>, param: &str) -> Result<serde_json::Value, RequestError> {
    let (image, param) = object(part, "image_url", param, &["url", "detail"])?;
    check_detail(image, &param)?;
    Ok(url_source(member(image, "url", &param)?))
}

fn input_image(part: Node<'_>, param: &str) -> Result<serde_json::Value, RequestError> {
    known(part, param, &["type", "image_url", "file_id", "detail"])?;
    check_detail(part, param)?;
    source(part, param, &["image_url", "file_id"])
}

/// The module decides how an image is read.
fn check_detail(image: Node<'_>, param: &str) -> Result<(), RequestError> {
    match image.get("detail").and_then(Node::as_str) {
        None | Some("auto") => Ok(()),
        Some(detail) => {
            let message = format!("`{param}.detail`: `{}` is not supported, except auto", shown(detail));
            Err(RequestError::new(Code::UnsupportedValue, format!("{param}.detail"), message))
        }
    }
}

/// Returns the source that one of these members names.
fn source(part: Node<'_>, param: &str, keys: &[&str]) -> Result<serde_json::Value, RequestError> {
    let mut present = keys.iter().filter(|key| part.get(key).is_some_and(|value| !value.is_null()));
    let (Some(key), None) = (present.next(), present.next()) else {
        let message = format!("`{param}` must have exactly one of {}", keys.join(", "));
        return Err(RequestError::new(Code::MissingRequiredField, param, message));
    };
    let value = member(part, key, param)?;
    match *key {
        "file_id" => Ok(json!({ "type": "upload_ref", "upload_id": value })),
        "file_data" => file_data(value, param),
        _ => Ok(url_source(value)),
    }
}

/// Returns the source of a data URL or of another URL, which the runtime checks.
fn url_source(url: &str) -> serde_json::Value {
    match data_url(url) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": url }),
    }
}

/// Splits `data:TYPE;base64,DATA`.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    Some((media_type, data))
}

fn audio(part: Node<'_>, param: &str) -> Result<serde_json::Value, RequestError> {
    let (audio, param) = object(part, "input_audio", param, &["data", "format"])?;
    let media_type = match member(audio, "format", &param)? {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        other => {
            let message = format!("`{param}.format`: `{}` is not supported", shown(other));
            return Err(RequestError::new(Code::UnsupportedValue, format!("{param}.format"), message)
                .suggest("Use wav or mp3."));
        }
    };
    Ok(json!({ "type": "base64", "media_type": media_type, "data": member(audio, "data", &param)? }))
}

fn file(part: Node<'_>, param: &str) -> Result<serde_json::Value, RequestError> {
    let (file, param) = object(part, "file", param, &["file_id", "file_data", "filename"])?;
    source(file, &param, &["file_id", "file_data"])
}

/// What a block of Anthropic contains.
enum Block<'a> {
    File(serde_json::Value),
    Text(&'a str),
}

/// Reads an image or a document.
fn block<'a>(part: Node<'a>, param: &str) -> Result<Block<'a>, RequestError> {
    known(part, param, &["type", "source", "title", "cache_control"])?;
    let param = format!("{param}.source");
    let Some(source) = part.get("source").filter(|source| source.is_object()) else {
        return Err(RequestError::new(
            Code::MissingRequiredField,
            &param,
            format!("`{param}` must be an object"),
        ));
    };
    let text = |key| member(source, key, &param);
    Ok(match text("type")? {
        "base64" => {
            Block::File(json!({ "type": "base64", "media_type": text("media_type")?, "data": text("data")? }))
        }
        "url" => Block::File(json!({ "type": "url", "url": text("url")? })),
        "file" => Block::File(json!({ "type": "upload_ref", "upload_id": text("file_id")? })),
        "text" => Block::Text(text("data")?),
        other => {
            let message = format!("`{param}.type`: `{}` is not supported", shown(other));
            return Err(RequestError::new(Code::UnsupportedValue, format!("{param}.type"), message)
                .suggest("Use base64, url, file or text."));
        }
    })
}

fn input_file(part: Node<'_>, param: &str) -> Result<serde_json::Value, RequestError> {
    known(part, param, &["type", "file_id", "file_data", "file_url", "filename"])?;
    source(part, param, &["file_id", "file_data", "file_url"])
}

fn file_data(data: &str, param: &str) -> Result<serde_json::Value, RequestError> {
    let Some((media_type, data)) = data_url(data) else {
        let message = format!("`{param}.file_data` is not a data URL");
        return Err(RequestError::new(Code::InvalidInput, format!("{param}.file_data"), message)
            .suggest("Send data:application/pdf;base64,… with the type of the file."));
    };
    Ok(json!({ "type": "base64", "media_type": media_type, "data": data }))
}

#[cfg(test)]
mod content_tests {
    use super::*;

    fn read(content: &str) -> Result<Content, String> {
        let content = cog_json::Value::parse(content).unwrap();
        Content::read(content.node(), "messages[0].content").map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn parts_become_text_and_files() {
        let read = read(
            r#"[{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "auto"}},
                {"type": "input_audio", "input_audio": {"format": "mp3", "data": "BBBB"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC"}},
                {"type": "file", "file": {"file_id": "upl_1"}},
                {"type": "input_text", "text": "c"},
                {"type": "output_text", "text": "d", "annotations": [], "logprobs": []},
                {"type": "input_image", "image_url": "data:image/png;base64,DDDD", "detail": "auto"},
                {"type": "input_image", "file_id": "upl_2"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,EEEE"},
                {"type": "input_file", "file_url": "https://a.example/c.pdf"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "FFFF"}},
                {"type": "image", "source": {"type": "url", "url": "https://a.example/d.png"}},
                {"type": "document", "title": "t", "source": {"type": "file", "file_id": "upl_3"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "e"}}]"#,
        )
        .unwrap();
        assert_eq!(read.text.as_deref(), Some("a\nb\nc\nd\ne"));
        let expected = json!([
            {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            {"type": "url", "url": "https://a.example/b.png"},
            {"type": "base64", "media_type": "audio/mpeg", "data": "BBBB"},
            {"type": "base64", "media_type": "application/pdf", "data": "CCCC"},
            {"type": "upload_ref", "upload_id": "upl_1"},
            {"type": "base64", "media_type": "image/png", "data": "DDDD"},
            {"type": "upload_ref", "upload_id": "upl_2"},
            {"type": "base64", "media_type": "application/pdf", "data": "EEEE"},
            {"type": "url", "url": "https://a.example/c.pdf"},
            {"type": "base64", "media_type": "image/png", "data": "FFFF"},
            {"type": "url", "url": "https://a.example/d.png"},
            {"type": "upload_ref", "upload_id": "upl_3"},
        ]);
        assert_eq!(serde_json::Value::Array(read.files), expected);
    }

    #[test]
    fn other_parts_are_refused_with_their_path() {
        for (content, expected) in [
            (r#"[{"type": "video_url"}]"#, "messages[0].content[0].type"),
            (
                r#"[{"type": "image_url", "image_url": "https://a.example"}]"#,
                "messages[0].content[0].image_url",
            ),
            (r#"[{"type": "image_url", "image_url": {"url": "x", "detail": "high"}}]"#, "image_url.detail"),
            (
                r#"[{"type": "input_audio", "input_audio": {"format": "flac", "data": ""}}]"#,
                "input_audio.format",
            ),
            (r#"[{"type": "file", "file": {"file_data": "AAAA"}}]"#, "file.file_data"),
            (r#"[{"type": "text", "text": "a", "cache": true}]"#, "messages[0].content[0].cache"),
            (r#"[{"type": "image_url", "image_url": {"url": "x", "crop": 1}}]"#, "image_url.crop"),
            (r#"[{"type": "input_image", "image_url": "x", "file_id": "y"}]"#, "exactly one of"),
            (r#"[{"type": "input_file", "filename": "a.pdf"}]"#, "exactly one of"),
            (
                r#"[{"type": "document", "source": {"type": "content", "content": []}}]"#,
                "content[0].source.type",
            ),
            (r#"[{"type": "image", "source": {"type": "base64", "data": "A"}}]"#, "content[0].source"),
            (r#"[{"type": "tool_result", "tool_use_id": "a"}]"#, "messages[0].content[0].type"),
            (r#"[{"type": "input_image", "image_url": "x", "detail": "low"}]"#, "content[0].detail"),
            ("[{}]", "messages[0].content[0]"),
            ("7", "messages[0].content"),
        ] {
            let error = read(content).unwrap_err();
            assert!(error.contains(expected), "{content}: {error}");
        }
    }
}
