use serde_json::{Map, Value, json};

use super::data;
use crate::{Finish, Reply};

const ID: &str = "chatcmpl-mock";
const CREATED: u64 = 1_790_000_000;

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let mut events =
        vec![chunk(reply, &json!({ "role": "assistant", "content": "", "refusal": null }), None)];
    let reasoning = reply.reasoning_pieces();
    events.extend(reasoning.iter().map(|piece| chunk(reply, &json!({ "reasoning_content": piece }), None)));
    match &reply.refusal {
        Some(words) => events.push(chunk(reply, &json!({ "refusal": words }), None)),
        None => {
            let pieces = reply.text_pieces();
            events.extend(pieces.iter().map(|piece| chunk(reply, &json!({ "content": piece }), None)));
            if let Some(images) = inline_images(reply) {
                events.push(chunk(reply, &json!({ "content": "", "images": images }), None));
            }
        }
    }
    if let Some(message) = &reply.fault {
        events.push(data(&failure(500, message)));
        return events;
    }
    events.push(chunk(reply, &json!({}), Some(finish(reply))));
    events.push(data(&json!({
        "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": reply.model,
        "system_fingerprint": "fp_mock", "choices": [], "usage": usage(reply),
    })));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn whole(reply: &Reply) -> Value {
    json!({
        "id": ID, "object": "chat.completion", "created": CREATED, "model": reply.model,
        "system_fingerprint": "fp_mock",
        "choices": [{
            "index": 0,
            "message": message(reply),
            "logprobs": null,
            "finish_reason": finish(reply),
        }],
        "usage": usage(reply),
    })
}

/// An `ImagesResponse`, whose only words are the prompt as it was understood.
pub(super) fn images(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    let format = reply.media.first().and_then(|medium| medium.media_type.strip_prefix("image/"));
    let data = reply.media.iter().map(|medium| {
        let revised = Some(&reply.text).filter(|text| !text.is_empty());
        json!({ "b64_json": medium.data, "revised_prompt": revised })
    });
    json!({
        "created": CREATED, "data": data.collect::<Vec<_>>(), "background": "opaque",
        "output_format": format, "quality": "high", "size": "1024x1024",
        "usage": {
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": { "text_tokens": input, "image_tokens": 0 },
        },
    })
}

pub(super) fn failure(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

fn chunk(reply: &Reply, delta: &Value, finish: Option<&str>) -> String {
    data(&json!({
        "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": reply.model,
        "system_fingerprint": "fp_mock",
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }],
        "usage": null,
    }))
}

fn message(reply: &Reply) -> Map<String, Value> {
    let sound = reply.media.iter().find(|medium| medium.media_type.starts_with("audio/"));
    let content = (reply.refusal.is_none() && sound.is_none()).then_some(&reply.text);
    let audio = sound.map(|sound| {
        json!({ "id": "audio_mock", "data": sound.data, "expires_at": CREATED, "transcript": reply.text })
    });
    let always =
        [("role", json!("assistant")), ("content", json!(content)), ("refusal", json!(reply.refusal))];
    let media = [("images", inline_images(reply)), ("audio", audio)];
    let media = media.into_iter().filter_map(|(key, value)| Some((key, value?)));
    always.into_iter().chain(media).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Images as OpenRouter sends them.
fn inline_images(reply: &Reply) -> Option<Value> {
    let found = reply.media.iter().filter(|medium| medium.media_type.starts_with("image/"));
    let images: Vec<Value> = (0_u32..)
        .zip(found)
        .map(|(index, medium)| {
            let url = format!("data:{};base64,{}", medium.media_type, medium.data);
            json!({ "type": "image_url", "image_url": { "url": url }, "index": index })
        })
        .collect();
    (!images.is_empty()).then(|| images.into())
}

fn finish(reply: &Reply) -> &str {
    match &reply.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Word(word) => word,
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0 },
    })
}
