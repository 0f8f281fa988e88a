//! What the request mappings have in common.

use cog_harmony::{ImagePart, Message, Part, Role};
use cog_spec::Modality;
use serde_json::{Map, Value, json};

use super::Ask;
use crate::{RequestError, WireRequest};

/// A body under construction; keys stay in the order in which they are set.
pub(crate) struct Body(Map<String, Value>);

impl Body {
    pub(crate) fn new() -> Self {
        Self(Map::new())
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    pub(crate) fn set_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    pub(crate) fn set_list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.set(key, values.to_vec());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The body as the request that carries it.
    pub(crate) fn post(self, url: String, streams: bool) -> WireRequest {
        let accept = if streams { "text/event-stream" } else { "application/json" };
        WireRequest {
            method: "POST",
            url,
            headers: vec![("content-type", "application/json".to_owned()), ("accept", accept.to_owned())],
            auth: None,
            body: self.into_value().to_string(),
        }
    }
}

/// Checks that the vendor can take everything that is asked of it, before anything is mapped.
pub(crate) fn check(ask: &Ask<'_>) -> Result<(), RequestError> {
    let vendor = ask.vendor.title;
    let generation = &ask.request.generation;
    let quirks = &ask.vendor.quirks;
    if generation.temperature.is_some() && !quirks.temperature {
        return Err(RequestError::Option { vendor, option: "temperature" });
    }
    if generation.seed.is_some() && quirks.seed.is_none() {
        return Err(RequestError::Option { vendor, option: "seed" });
    }
    for message in ask.request.messages.messages() {
        if message.role == Role::Tool || !message.tool_calls.is_empty() {
            return Err(RequestError::Tools { vendor });
        }
        let missing = message.content.iter().map(modality).find(|kind| !ask.vendor.input.contains(kind));
        if let Some(modality) = missing {
            return Err(RequestError::Modality { vendor, modality });
        }
    }
    Ok(())
}

/// The same for vendors that take a picture only itself, not by its address.
pub(crate) fn check_inline(ask: &Ask<'_>) -> Result<(), RequestError> {
    check(ask)?;
    let parts = ask.request.messages.messages().iter().flat_map(|message| &message.content);
    for part in parts {
        if let Part::Image(image) = part {
            only_inline(image, ask.vendor.title)?;
        }
    }
    Ok(())
}

fn modality(part: &Part) -> Modality {
    match part {
        Part::Image(_) => Modality::Image,
        Part::Audio(_) => Modality::Audio,
        _ => Modality::Text,
    }
}

/// The system text and the other messages, for vendors that keep the two apart. Such vendors want at
/// least one turn: where there is none, the system text is it.
pub(crate) fn split_system<'a>(ask: &Ask<'a>) -> (Option<String>, Vec<Turn<'a>>) {
    let (system, turns): (Vec<_>, Vec<_>) =
        ask.request.messages.messages().iter().partition(|message| message.role == Role::System);
    let text = system.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n\n");
    if turns.is_empty() {
        return (None, vec![Turn::Text(text)]);
    }
    (Some(text).filter(|text| !text.is_empty()), turns.into_iter().map(Turn::Message).collect())
}

/// A turn of the conversation.
pub(crate) enum Turn<'a> {
    /// A message as it stands.
    Message(&'a Message),
    /// A user's text.
    Text(String),
}

/// Type and base64 of a `data:` address.
pub(crate) fn inline(image: &ImagePart) -> Option<(&str, &str)> {
    image.url.strip_prefix("data:")?.split_once(";base64,")
}

/// A picture by address, for vendors that take only the picture itself.
pub(crate) fn only_inline<'a>(
    image: &'a ImagePart,
    vendor: &'static str,
) -> Result<(&'a str, &'a str), RequestError> {
    inline(image).ok_or(RequestError::Address { vendor })
}

/// `{type: text, text}`, which most vendors have.
pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The content of a message that is one text and nothing else.
pub(crate) fn only_text(message: &Message) -> Option<String> {
    let plain = message.content.iter().all(|part| part.as_text().is_some());
    (plain && message.content.len() <= 1).then(|| message.text())
}
