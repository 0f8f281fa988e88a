use serde_json::{Value, json};

use super::data;
use crate::{Finish, Reply};

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    if reply.refusal.is_some() {
        return vec![data(&complete(reply))];
    }
    let thoughts = reply.reasoning_chunks().into_iter().map(|text| json!({ "text": text, "thought": true }));
    let texts = reply.text_chunks().into_iter().map(|text| json!({ "text": text }));
    let mut parts: Vec<Value> = thoughts.chain(texts).chain(media(reply)).chain(calls(reply)).collect();
    let last = parts.pop().unwrap_or_default();
    let mut events: Vec<String> = parts.iter().map(|part| data(&response(reply, part, None))).collect();
    match &reply.error {
        Some(message) => {
            events.push(data(&response(reply, &last, None)));
            events.push(data(&error_body(503, message)));
        }
        None => events.push(data(&response(reply, &last, Some(finish(reply))))),
    }
    events
}

pub(super) fn complete(reply: &Reply) -> Value {
    match reply.refusal {
        Some(_) => json!({
            "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
            "usageMetadata": usage(reply), "modelVersion": reply.model, "responseId": "mock",
        }),
        None => {
            let text = reply.has_text().then(|| json!({ "text": reply.text }));
            let parts: Vec<Value> = text.into_iter().chain(media(reply)).chain(calls(reply)).collect();
            candidate(reply, parts, Some(finish(reply)))
        }
    }
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({ "error": { "code": status, "message": message, "status": name } })
}

/// Returns the calls. The first has a signature, which the next request must contain.
fn calls(reply: &Reply) -> impl Iterator<Item = Value> {
    reply.tool_calls.iter().enumerate().map(|(index, call)| {
        let mut part = json!({ "functionCall": { "id": call.id, "name": call.name, "args": call.object() } });
        if let Some(part) = part.as_object_mut().filter(|_| index == 0) {
            part.insert("thoughtSignature".to_owned(), "c2lnbmF0dXJl".into());
        }
        part
    })
}

fn media(reply: &Reply) -> impl Iterator<Item = Value> {
    reply
        .media
        .iter()
        .map(|media| json!({ "inlineData": { "mimeType": media.media_type, "data": media.data } }))
}

fn response(reply: &Reply, part: &Value, finish: Option<&str>) -> Value {
    candidate(reply, vec![part.clone()], finish)
}

fn candidate(reply: &Reply, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if let (Some(reason), Some(fields)) = (finish, candidate.as_object_mut()) {
        fields.insert("finishReason".to_owned(), reason.into());
        if reason == "CONTINUATION" {
            fields.insert("continuationToken".to_owned(), "bW9jaw==".into());
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(reply), "modelVersion": reply.model,
        "responseId": "mock",
    })
}

fn finish(reply: &Reply) -> &str {
    match &reply.finish {
        Finish::Stop => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Other(reason) => reason,
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output })
}
