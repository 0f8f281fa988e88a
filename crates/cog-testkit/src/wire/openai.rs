use serde_json::{Map, Value, json};

use super::data;
use crate::{Finish, Reply, reply::ToolCall};

const ID: &str = "chatcmpl-mock";
const CREATED: u64 = 1_790_000_000;

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let mut events =
        vec![chunk(reply, &json!({ "role": "assistant", "content": "", "refusal": null }), None)];
    let reasoning = reply.reasoning_chunks();
    events.extend(reasoning.iter().map(|text| chunk(reply, &json!({ "reasoning_content": text }), None)));
    match &reply.refusal {
        Some(explanation) => events.push(chunk(reply, &json!({ "refusal": explanation }), None)),
        None => {
            let chunks = reply.text_chunks();
            events.extend(chunks.iter().map(|text| chunk(reply, &json!({ "content": text }), None)));
            if let Some(images) = inline_images(reply) {
                events.push(chunk(reply, &json!({ "content": "", "images": images }), None));
            }
            for (index, call) in reply.tool_calls.iter().enumerate() {
                events.extend(call_chunks(reply, index, call));
            }
        }
    }
    if let Some(message) = &reply.error {
        events.push(data(&error_body(500, message)));
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

pub(super) fn complete(reply: &Reply) -> Value {
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

/// Returns an `ImagesResponse`. Its only text is the revised prompt.
pub(super) fn images(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    let format = reply.media.first().and_then(|media| media.media_type.strip_prefix("image/"));
    let data = reply.media.iter().map(|media| {
        let revised = Some(&reply.text).filter(|text| !text.is_empty());
        json!({ "b64_json": media.data, "revised_prompt": revised })
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

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// Returns the chunks of a call: the first names it, and the others contain the arguments.
fn call_chunks(reply: &Reply, index: usize, call: &ToolCall) -> Vec<String> {
    let function = json!({ "name": call.name, "arguments": "" });
    let first = json!({ "index": index, "id": call.id, "type": "function", "function": function });
    let arguments = reply.argument_chunks(call).into_iter();
    let rest = arguments.map(|text| json!({ "index": index, "function": { "arguments": text } }));
    std::iter::once(first)
        .chain(rest)
        .map(|call| chunk(reply, &json!({ "tool_calls": [call] }), None))
        .collect()
}

/// Returns the calls of a complete message.
fn calls(reply: &Reply) -> Option<Value> {
    let calls = reply.tool_calls.iter().map(|call| {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    });
    let calls: Vec<Value> = calls.collect();
    (!calls.is_empty()).then(|| calls.into())
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
    let audio_item = reply.media.iter().find(|media| media.media_type.starts_with("audio/"));
    let has_content = reply.refusal.is_none() && audio_item.is_none() && reply.has_text();
    let content = has_content.then_some(&reply.text);
    let reasoning = Some(&reply.reasoning).filter(|text| !text.is_empty());
    let audio = audio_item.map(|audio_item| {
        json!({ "id": "audio_mock", "data": audio_item.data, "expires_at": CREATED, "transcript": reply.text })
    });
    let always =
        [("role", json!("assistant")), ("content", json!(content)), ("refusal", json!(reply.refusal))];
    let optional = [
        ("images", inline_images(reply)),
        ("audio", audio),
        ("reasoning_content", reasoning.map(|text| json!(text))),
        ("tool_calls", calls(reply)),
    ];
    let optional = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
    always.into_iter().chain(optional).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns the images in the format of OpenRouter.
fn inline_images(reply: &Reply) -> Option<Value> {
    let found = reply.media.iter().filter(|media| media.media_type.starts_with("image/"));
    let images: Vec<Value> = (0_u32..)
        .zip(found)
        .map(|(index, media)| {
            let url = format!("data:{};base64,{}", media.media_type, media.data);
            json!({ "type": "image_url", "image_url": { "url": url }, "index": index })
        })
        .collect();
    (!images.is_empty()).then(|| images.into())
}

fn finish(reply: &Reply) -> &str {
    match &reply.finish {
        Finish::Stop if !reply.tool_calls.is_empty() => "tool_calls",
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other(reason) => reason,
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
