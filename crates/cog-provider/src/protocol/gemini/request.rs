use cog_harmony::{AudioPart, ImagePart, Message, Part, Role};
use cog_spec::Dialect;
use serde_json::{Value, json};

use super::{bare_name, version_path};
use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        Ask,
        parts::{Body, Turn, check_inline, only_inline, split_system},
    },
};

pub(super) fn check(ask: &Ask<'_>) -> Result<(), RequestError> {
    check_inline(ask)?;
    checked_name(ask.model).map(drop)
}

pub(super) fn request(ask: &Ask<'_>) -> Result<WireRequest, RequestError> {
    check(ask)?;
    let model = checked_name(ask.model)?;
    let (system, turns) = split_system(ask);
    let contents = turns.iter().map(|turn| content(turn, ask.vendor.title)).collect::<Result<Vec<_>, _>>()?;

    let mut body = Body::new();
    body.set_some("systemInstruction", system.map(|text| json!({ "parts": [{ "text": text }] })));
    body.set("contents", contents);
    let config = generation_config(ask);
    if !config.is_empty() {
        body.set("generationConfig", config.into_value());
    }
    let version = version_path(ask.base_url);
    Ok(body.post(format!("{}{version}/models/{model}:streamGenerateContent?alt=sse", ask.base_url), true))
}

/// The name stands in the path, so it may hold nothing that changes the path.
fn checked_name(model: &str) -> Result<&str, RequestError> {
    let name = bare_name(model);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        true => Ok(name),
        false => Err(RequestError::BadModel { model: model.to_owned() }),
    }
}

fn generation_config(ask: &Ask<'_>) -> Body {
    let generation = &ask.request.generation;
    let mut config = Body::new();
    if let Some(output) = ask.request.output.as_ref().filter(|output| output.dialect != Dialect::Prompt) {
        set_output(&mut config, output);
    }
    config.set_some("maxOutputTokens", generation.max_tokens);
    config.set_some("temperature", generation.temperature);
    config.set_some("seed", generation.seed);
    config.set_list("stopSequences", &generation.stop);
    config
}

fn set_output(config: &mut Body, output: &OutputSchema) {
    config.set("responseMimeType", "application/json");
    config.set_some("responseJsonSchema", output.schema.clone());
}

fn content(turn: &Turn<'_>, vendor: &'static str) -> Result<Value, RequestError> {
    match turn {
        Turn::Text(text) => Ok(json!({ "role": "user", "parts": [{ "text": text }] })),
        Turn::Message(message) => {
            let parts =
                message.content.iter().map(|inner| part(inner, vendor)).collect::<Result<Vec<_>, _>>()?;
            Ok(json!({ "role": role(message), "parts": parts }))
        }
    }
}

fn role(message: &Message) -> &'static str {
    if message.role == Role::Assistant { "model" } else { "user" }
}

fn part(part: &Part, vendor: &'static str) -> Result<Value, RequestError> {
    Ok(match part {
        Part::Image(image) => picture(image, vendor)?,
        Part::Audio(audio) => sound(audio),
        other => json!({ "text": other.as_text().unwrap_or_default() }),
    })
}

fn picture(image: &ImagePart, vendor: &'static str) -> Result<Value, RequestError> {
    let (media_type, data) = only_inline(image, vendor)?;
    Ok(json!({ "inlineData": { "mimeType": media_type, "data": data } }))
}

fn sound(audio: &AudioPart) -> Value {
    json!({ "inlineData": { "mimeType": format!("audio/{}", audio.format), "data": audio.data } })
}
