use serde_json::{Value, json};

use crate::{Finish, Reply};

const ID: &str = "msg_mock";
const SIGNATURE: &str = "c2lnbmF0dXJl";

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let (input, output) = reply.usage;
    let mut events = vec![
        event(&json!({ "type": "message_start", "message": {
            "id": ID, "type": "message", "role": "assistant", "model": reply.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": input, "output_tokens": 1 },
        } })),
        event(&json!({ "type": "ping" })),
    ];
    let mut index = 0;
    if !reply.reasoning.is_empty() {
        let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let signature = json!({ "type": "signature_delta", "signature": SIGNATURE });
        let deltas = deltas(reply.reasoning_chunks(), "thinking_delta", "thinking");
        block(&mut events, index, &start, deltas.chain([signature]));
        index += 1;
    }
    if reply.refusal.is_none() && reply.has_text() {
        let deltas = deltas(reply.text_chunks(), "text_delta", "text");
        block(&mut events, index, &json!({ "type": "text", "text": "" }), deltas);
        index += 1;
    }
    for call in &reply.tool_calls {
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let deltas = deltas(reply.argument_chunks(call), "input_json_delta", "partial_json");
        block(&mut events, index, &start, deltas);
        index += 1;
    }
    if let Some(message) = &reply.error {
        events.push(event(&error_body(529, message)));
        return events;
    }
    events.push(event(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(reply), "stop_sequence": null, "stop_details": stop_details(reply) },
        "usage": { "output_tokens": output },
    })));
    events.push(event(&json!({ "type": "message_stop" })));
    events
}

pub(super) fn complete(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    let content = match reply.refusal {
        Some(_) => json!([]),
        None => content(reply),
    };
    json!({
        "id": ID, "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": stop_reason(reply), "stop_sequence": null, "stop_details": stop_details(reply),
        "usage": { "input_tokens": input, "output_tokens": output },
    })
}

fn content(reply: &Reply) -> Value {
    let thinking = json!({ "type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE });
    let thinking = (!reply.reasoning.is_empty()).then_some(thinking);
    let text = reply.has_text().then(|| json!({ "type": "text", "text": reply.text }));
    let calls = reply
        .tool_calls
        .iter()
        .map(|call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.object() }));
    thinking.into_iter().chain(text).chain(calls).collect()
}

pub(super) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_mock" })
}

/// Returns the deltas of a block, each with a chunk in the member `key`.
fn deltas(chunks: Vec<String>, kind: &'static str, key: &'static str) -> impl Iterator<Item = Value> {
    chunks.into_iter().map(move |chunk| json!({ "type": kind, key: chunk }))
}

fn block(events: &mut Vec<String>, index: usize, start: &Value, deltas: impl Iterator<Item = Value>) {
    events.push(event(&json!({ "type": "content_block_start", "index": index, "content_block": start })));
    for delta in deltas {
        events.push(event(&json!({ "type": "content_block_delta", "index": index, "delta": delta })));
    }
    events.push(event(&json!({ "type": "content_block_stop", "index": index })));
}

fn event(value: &Value) -> String {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

fn stop_reason(reply: &Reply) -> &str {
    match &reply.finish {
        _ if reply.refusal.is_some() => "refusal",
        Finish::Stop if !reply.tool_calls.is_empty() => "tool_use",
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
        Finish::Other(reason) => reason,
    }
}

fn stop_details(reply: &Reply) -> Option<Value> {
    let explanation = reply.refusal.as_ref()?;
    Some(json!({ "type": "refusal", "category": null, "explanation": explanation }))
}
