use serde_json::{Value, json};

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
    let content = reply.refusal.is_none().then_some(&reply.text);
    json!({
        "id": ID, "object": "chat.completion", "created": CREATED, "model": reply.model,
        "system_fingerprint": "fp_mock",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": content, "refusal": reply.refusal },
            "logprobs": null,
            "finish_reason": finish(reply),
        }],
        "usage": usage(reply),
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
