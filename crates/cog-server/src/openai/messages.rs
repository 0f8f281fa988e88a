//! From the messages of a request to the input of a module: those of a chat completion, and the items of a response.

use cog_json::{Node, Value};
use cog_module::Module;
use cog_run::RunInput;
use cog_spec::Code;
use serde_json::{Map, json};

use super::{content::Content, error::OpenAiError, parameters::shown};

/// The type of context that earlier messages become (docs/context.md).
const HISTORY: &str = "conversation_history";

/// What a message may have beside its role and content, without a meaning for a module.
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
    User,
    Assistant,
}

impl Message {
    /// A text of the user, which is the parameter of this name.
    pub(super) fn from_user_text(text: &str, param: &str) -> Self {
        let content = Content { text: Some(text.to_owned()), ..Content::default() };
        let [role_param, content_param] = [param; 2].map(str::to_owned);
        Self { role: Role::User, content, role_param, content_param }
    }

    /// Reads the messages of a chat completion, or the items of a response.
    ///
    /// # Errors
    /// E1001 to E1004, with the path of the message.
    pub(super) fn read_list(list: Option<Node<'_>>, name: &str) -> Result<Vec<Self>, OpenAiError> {
        let messages = list.filter(|list| list.is_array()).into_iter().flat_map(|list| list.elements());
        let read = |(index, message)| Self::read(message, &format!("{name}[{index}]"), name == "input");
        messages.enumerate().map(read).collect()
    }

    fn read(message: Node<'_>, param: &str, is_item: bool) -> Result<Self, OpenAiError> {
        let role = role(message, param, is_item)?;
        let [role_param, content_param] = ["role", "content"].map(|key| format!("{param}.{key}"));
        let content = Content::read(message.get("content").unwrap_or(message), &content_param)?;
        Ok(Self { role, content, role_param, content_param })
    }

    /// Returns an earlier message as a turn of the conversation.
    fn into_turn(self) -> Result<serde_json::Value, OpenAiError> {
        let role = match self.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match (self.content.text, self.content.files.as_slice()) {
            (Some(text), []) => Ok(json!({ "role": role, "content": text })),
            _ => {
                let param = self.content_param;
                let message = format!("`{param}`: an earlier message must be a text");
                Err(OpenAiError::new(Code::UnsupportedValue, param, message))
            }
        }
    }
}

/// Returns the input that messages are for a module: the last one is the input, and those before it are its
/// `conversation_history`. `name` is the parameter with the messages.
///
/// # Errors
/// E1001 to E1004, with the path of the message.
pub(super) fn input(
    mut messages: Vec<Message>,
    name: &str,
    module: &Module,
) -> Result<RunInput, OpenAiError> {
    let Some(Message { role, content, role_param, content_param }) = messages.pop() else {
        let message = format!("`{name}` must be an array with at least one message");
        return Err(OpenAiError::new(Code::MissingRequiredField, name, message));
    };
    if role != Role::User {
        let message = "the last message must be one of the user";
        return Err(OpenAiError::new(Code::InvalidInput, role_param, message));
    }
    let history = messages.into_iter().map(Message::into_turn).collect::<Result<Vec<_>, _>>()?;
    let mut fields = Map::new();
    let text = content.text.filter(|text| !merge_object(text, &mut fields));
    place_files(content.files, module, &mut fields, &content_param)?;
    if !history.is_empty() {
        accepts_history(module, name)?;
        fields.insert("_context".to_owned(), json!({ HISTORY: history }));
    }
    let fields = Value::from(serde_json::Value::Object(fields));
    Ok(match text {
        Some(text) => {
            has_text_field(module, &content_param)?;
            RunInput::ArgsWith(text, fields)
        }
        None => RunInput::Json(fields),
    })
}

/// Returns the role of a message that a module can use.
fn role(message: Node<'_>, param: &str, is_item: bool) -> Result<Role, OpenAiError> {
    let refused = |key: &str, message: String| {
        OpenAiError::new(Code::UnsupportedValue, format!("{param}.{key}"), message)
    };
    if let Some(kind) =
        message.get("type").and_then(Node::as_str).filter(|kind| is_item && *kind != "message")
    {
        return Err(refused("type", format!("`{param}.type`: `{}` is not supported", shown(kind))).suggest(
            "Send messages only: the runtime calls the tools of a module, and no response is stored.",
        ));
    }
    let ignored = if is_item { IGNORED_OF_ITEM } else { IGNORED };
    let known =
        |key: &str| ["role", "content"].contains(&key) || ignored.contains(&key) || is_item && key == "type";
    let other = message.members().find(|(key, value)| !known(key) && !value.is_null());
    if let Some((key, _)) = other {
        return Err(refused(&shown(key), format!("`{param}.{}` is not supported", shown(key))));
    }
    match message.get("role").and_then(Node::as_str) {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system" | "developer") => Err(refused(
            "role",
            format!("`{param}`: a module has its own prompt, and takes no other instructions"),
        )
        .suggest("Remove the message, or put its text into a field of the input.")),
        Some(role) => Err(refused("role", format!("`{param}.role`: `{}` is not supported", shown(role)))
            .suggest("Use user or assistant.")),
        None => {
            let message = format!("`{param}.role` must be a string");
            Err(OpenAiError::new(Code::MissingRequiredField, format!("{param}.role"), message))
        }
    }
}

/// Adds the members of a text that is a JSON object. Returns false for another text.
fn merge_object(text: &str, fields: &mut Map<String, serde_json::Value>) -> bool {
    if !text.trim_start().starts_with('{') {
        return false;
    }
    match Value::parse(text).map(|value| value.to_serde()) {
        Ok(serde_json::Value::Object(members)) => {
            fields.extend(members);
            true
        }
        _ => false,
    }
}

/// Puts the files of a message into the media fields of the input, in the order of the schema.
fn place_files(
    files: Vec<serde_json::Value>,
    module: &Module,
    fields: &mut Map<String, serde_json::Value>,
    param: &str,
) -> Result<(), OpenAiError> {
    let count = files.len();
    let mut files = files.into_iter();
    for field in module.contract.media_fields() {
        if fields.contains_key(field.name) || files.len() == 0 {
            continue;
        }
        let value = match field.is_list {
            true => Some(files.by_ref().collect()),
            false => files.next(),
        };
        fields.extend(value.map(|value| (field.name.to_owned(), value)));
    }
    if files.len() == 0 {
        return Ok(());
    }
    let name = &module.manifest.name;
    let message = match count - files.len() {
        0 => format!("`{name}` accepts no files"),
        places => format!("`{name}` accepts {places} of these {count} files"),
    };
    Err(OpenAiError::new(Code::InvalidInput, param, message))
}

fn accepts_history(module: &Module, name: &str) -> Result<(), OpenAiError> {
    if module.manifest.context.accepted(HISTORY).is_some() {
        return Ok(());
    }
    let message = format!("`{}` reads no earlier messages", module.manifest.name);
    Err(OpenAiError::new(Code::InvalidInput, name, message).suggest(
        "Send only the last message, or let `context.accepts` of the manifest list conversation_history.",
    ))
}

fn has_text_field(module: &Module, param: &str) -> Result<(), OpenAiError> {
    let Err(candidates) = module.contract.args_target() else { return Ok(()) };
    let name = &module.manifest.name;
    let message = match candidates.as_slice() {
        [] => format!("the input of `{name}` has no text field"),
        many => format!("the text could be any of these fields of `{name}`: {}", many.join(", ")),
    };
    Err(OpenAiError::new(Code::InvalidInput, param, message)
        .suggest("Send the input as a JSON object in the content of the message."))
}
