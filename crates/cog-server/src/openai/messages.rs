//! From the messages of a request to the input of a module.

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

/// Returns the input that the messages of a request are for a module: the last one is the input, and those before it are
/// its `conversation_history`.
///
/// # Errors
/// E1001 to E1004, with the path of the message.
pub(super) fn input(messages: Option<Node<'_>>, module: &Module) -> Result<RunInput, OpenAiError> {
    let messages: Vec<Node<'_>> = messages.map(|list| list.elements().collect()).unwrap_or_default();
    let Some((last, earlier)) = messages.split_last() else {
        let message = "`messages` must be an array with at least one message";
        return Err(OpenAiError::new(Code::MissingRequiredField, "messages", message));
    };
    let mut history = Vec::new();
    for (index, message) in earlier.iter().enumerate() {
        history.push(turn(*message, &format!("messages[{index}]"))?);
    }
    let param = format!("messages[{}]", earlier.len());
    if role(*last, &param)? != "user" {
        let message = "the last message must be one of the user";
        return Err(OpenAiError::new(Code::InvalidInput, format!("{param}.role"), message));
    }
    let content = Content::read(last.get("content").unwrap_or(*last), &format!("{param}.content"))?;
    let mut fields = Map::new();
    let text = content.text.filter(|text| !merge_object(text, &mut fields));
    place_files(content.files, module, &mut fields, &param)?;
    if !history.is_empty() {
        accepts_history(module)?;
        fields.insert("_context".to_owned(), json!({ HISTORY: history }));
    }
    let fields = Value::from(serde_json::Value::Object(fields));
    Ok(match text {
        Some(text) => {
            has_text_field(module, &param)?;
            RunInput::ArgsWith(text, fields)
        }
        None => RunInput::Json(fields),
    })
}

/// Returns the role of a message that a module can use.
fn role<'a>(message: Node<'a>, param: &str) -> Result<&'a str, OpenAiError> {
    let refused = |key: &str, message: String| {
        OpenAiError::new(Code::UnsupportedValue, format!("{param}.{key}"), message)
    };
    let known = |key: &str| ["role", "content"].contains(&key) || IGNORED.contains(&key);
    let other = message.members().find(|(key, value)| !known(key) && !value.is_null());
    if let Some((key, _)) = other {
        return Err(refused(&shown(key), format!("`{param}.{}` is not supported", shown(key))));
    }
    match message.get("role").and_then(Node::as_str) {
        Some(role @ ("user" | "assistant")) => Ok(role),
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

/// Returns an earlier message as a turn of the conversation.
fn turn(message: Node<'_>, param: &str) -> Result<serde_json::Value, OpenAiError> {
    let role = role(message, param)?;
    let param = format!("{param}.content");
    let content = Content::read(message.get("content").unwrap_or(message), &param)?;
    match (content.text, content.files.as_slice()) {
        (Some(text), []) => Ok(json!({ "role": role, "content": text })),
        _ => {
            let message = format!("`{param}`: an earlier message must be a text");
            Err(OpenAiError::new(Code::UnsupportedValue, param, message))
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
    Err(OpenAiError::new(Code::InvalidInput, format!("{param}.content"), message))
}

fn accepts_history(module: &Module) -> Result<(), OpenAiError> {
    if module.manifest.context.accepted(HISTORY).is_some() {
        return Ok(());
    }
    let message = format!("`{}` reads no earlier messages", module.manifest.name);
    Err(OpenAiError::new(Code::InvalidInput, "messages", message).suggest(
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
    Err(OpenAiError::new(Code::InvalidInput, format!("{param}.content"), message)
        .suggest("Send the input as a JSON object in the content of the message."))
}
