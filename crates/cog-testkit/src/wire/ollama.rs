use serde_json::{Value, json};

use crate::{Finish, Reply};

const CREATED: &str = "2026-11-20T12:00:00.000000Z";

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let thoughts = reply.reasoning_chunks();
    let thoughts =
        thoughts.iter().map(|text| json!({ "role": "assistant", "content": "", "thinking": text }));
    let texts = reply.text_chunks();
    let texts = texts.iter().map(|text| json!({ "role": "assistant", "content": text }));
    let calls = (!reply.tool_calls.is_empty())
        .then(|| json!({ "role": "assistant", "content": "", "tool_calls": tool_calls(reply) }));
    let mut lines: Vec<String> =
        thoughts.chain(texts).chain(calls).map(|message| line(&partial(reply, &message))).collect();
    lines.push(line(&match &reply.error {
        Some(message) => error_body(message),
        None => last(reply, json!({ "role": "assistant", "content": "" })),
    }));
    lines
}

pub(super) fn complete(reply: &Reply) -> Value {
    let mut message = json!({ "role": "assistant", "content": reply.text });
    if let Some(message) = message.as_object_mut().filter(|_| !reply.tool_calls.is_empty()) {
        message.insert("tool_calls".to_owned(), tool_calls(reply));
    }
    last(reply, message)
}

/// Returns the calls, which have no identifiers.
fn tool_calls(reply: &Reply) -> Value {
    let calls = reply.tool_calls.iter();
    calls.map(|call| json!({ "function": { "name": call.name, "arguments": call.object() } })).collect()
}

pub(super) fn error_body(message: &str) -> Value {
    json!({ "error": message })
}

fn partial(reply: &Reply, message: &Value) -> Value {
    json!({ "model": reply.model, "created_at": CREATED, "message": message, "done": false })
}

fn last(reply: &Reply, message: Value) -> Value {
    let (input, output) = reply.usage;
    json!({
        "model": reply.model, "created_at": CREATED, "message": message,
        "done": true, "done_reason": finish(reply),
        "total_duration": 5_000_000, "load_duration": 1_000_000, "prompt_eval_count": input,
        "prompt_eval_duration": 1_000_000, "eval_count": output, "eval_duration": 3_000_000,
    })
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn finish(reply: &Reply) -> &str {
    match &reply.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other(reason) => reason,
    }
}
