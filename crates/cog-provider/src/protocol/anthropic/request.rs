use cog_harmony::{ImagePart, Message, Part};
use cog_spec::Dialect;
use serde_json::{Value, json};

use super::{Anthropic, version_path};
use crate::{
    OutputSchema, RequestError, WireRequest,
    protocol::{
        Ask, Protocol,
        parts::{Body, Turn, check, inline, only_text, split_system, text_block},
    },
};

/// The vendor wants a limit. Reasoning counts towards it, so it is generous.
const MAX_TOKENS: u64 = 16_384;

pub(super) fn request(ask: &Ask<'_>) -> Result<WireRequest, RequestError> {
    check(ask)?;
    let generation = &ask.request.generation;
    let (system, turns) = split_system(ask);

    let mut body = Body::new();
    body.set("model", ask.model);
    body.set("max_tokens", generation.max_tokens.unwrap_or(MAX_TOKENS));
    body.set_some("system", system);
    body.set("messages", turns.iter().map(turn).collect::<Vec<_>>());
    body.set_some("output_config", ask.request.output.as_deref().and_then(output_config));
    body.set_list("stop_sequences", &generation.stop);
    body.set("stream", true);

    let url = format!("{}{}/messages", ask.base_url, version_path(ask.base_url));
    let mut request = body.post(url, true);
    request.headers.extend(Anthropic.headers());
    Ok(request)
}

fn output_config(output: &OutputSchema) -> Option<Value> {
    let schema = output.schema.as_ref().filter(|_| output.dialect != Dialect::Prompt)?;
    Some(json!({ "format": { "type": "json_schema", "schema": schema } }))
}

fn turn(turn: &Turn<'_>) -> Value {
    match turn {
        Turn::Text(text) => json!({ "role": "user", "content": text }),
        Turn::Message(message) => json!({ "role": message.role.as_str(), "content": content(message) }),
    }
}

fn content(message: &Message) -> Value {
    match only_text(message) {
        Some(text) => text.into(),
        None => message.content.iter().filter_map(block).collect(),
    }
}

fn block(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(text_block(&text.text)),
        Part::Image(image) => Some(json!({ "type": "image", "source": source(image) })),
        _ => None,
    }
}

fn source(image: &ImagePart) -> Value {
    match inline(image) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": image.url }),
    }
}
