use cog_harmony::{ImagePart, Message, Part, Role};
use cog_spec::Dialect;
use serde_json::{Value, json};

use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        Ask,
        parts::{Body, check, only_text, text_block},
    },
};

pub(super) fn request(ask: &Ask<'_>) -> Result<WireRequest, RequestError> {
    check(ask)?;
    let quirks = &ask.vendor.quirks;
    let format = ask.request.output.as_deref().and_then(response_format);
    let streams = format.is_none() || quirks.streams_schema;
    let messages: Vec<Value> = ask.request.messages.messages().iter().map(message).collect();

    let mut body = Body::new();
    body.set("model", ask.model);
    body.set("messages", messages);
    body.set_some("response_format", format);
    set_generation(&mut body, ask);
    body.set("stream", streams);
    if streams && quirks.stream_options {
        body.set("stream_options", json!({ "include_usage": true }));
    }
    for (key, value) in quirks.extra {
        body.set_some(key, serde_json::from_str::<Value>(value).ok());
    }
    Ok(body.post(format!("{}/chat/completions", ask.base_url), streams))
}

fn set_generation(body: &mut Body, ask: &Ask<'_>) {
    let generation = &ask.request.generation;
    body.set_some(ask.vendor.quirks.max_tokens, generation.max_tokens);
    body.set_some("temperature", generation.temperature);
    if let Some(key) = ask.vendor.quirks.seed {
        body.set_some(key, generation.seed);
    }
    body.set_list("stop", &generation.stop);
}

fn response_format(output: &OutputSchema) -> Option<Value> {
    let strict = output.dialect == Dialect::OpenAiStrict;
    match (output.dialect, &output.schema) {
        (Dialect::Prompt, _) => None,
        (Dialect::JsonObject, _) | (_, None) => Some(json!({ "type": "json_object" })),
        (_, Some(schema)) => {
            let mut inner = Body::new();
            inner.set("name", schema_name(&output.name));
            inner.set_some("strict", strict.then_some(true));
            inner.set("schema", schema.clone());
            Some(json!({ "type": "json_schema", "json_schema": inner.into_value() }))
        }
    }
}

/// Letters, digits, `_` and `-`, 64 at most: what the protocol allows.
fn schema_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name: String = name.chars().filter(|letter| allowed(*letter)).take(64).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

fn message(message: &Message) -> Value {
    let mut body = Body::new();
    body.set("role", message.role.as_str());
    body.set_some("name", message.name.clone());
    match only_text(message) {
        Some(text) => body.set("content", text),
        None => body.set(
            "content",
            message.content.iter().filter_map(|part| block(part, message.role)).collect::<Vec<_>>(),
        ),
    }
    body.into_value()
}

/// A part; only users send anything but text.
fn block(part: &Part, role: Role) -> Option<Value> {
    match part {
        Part::Text(text) => Some(text_block(&text.text)),
        Part::Image(image) if role == Role::User => Some(image_block(image)),
        Part::Audio(audio) if role == Role::User => Some(
            json!({ "type": "input_audio", "input_audio": { "data": audio.data, "format": audio.format } }),
        ),
        _ => None,
    }
}

fn image_block(image: &ImagePart) -> Value {
    let mut inner = Body::new();
    inner.set("url", image.url.as_str());
    inner.set_some("detail", image.detail.map(cog_harmony::Detail::as_str));
    json!({ "type": "image_url", "image_url": inner.into_value() })
}
