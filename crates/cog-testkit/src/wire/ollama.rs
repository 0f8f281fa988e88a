use serde_json::{Value, json};

use crate::{Finish, Reply};

const CREATED: &str = "2026-11-20T12:00:00.000000Z";

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let thoughts = reply.reasoning_chunks();
    let thoughts =
        thoughts.iter().map(|text| json!({ "role": "assistant", "content": "", "thinking": text }));
    let texts = reply.text_chunks();
    let texts = texts.iter().map(|text| json!({ "role": "assistant", "content": text }));
    let mut lines: Vec<String> =
        thoughts.chain(texts).map(|message| line(&partial(reply, &message))).collect();
    lines.push(line(&match &reply.error {
        Some(message) => error_body(message),
        None => last(reply, ""),
    }));
    lines
}

pub(super) fn complete(reply: &Reply) -> Value {
    last(reply, &reply.text)
}

pub(super) fn error_body(message: &str) -> Value {
    json!({ "error": message })
}

fn partial(reply: &Reply, message: &Value) -> Value {
    json!({ "model": reply.model, "created_at": CREATED, "message": message, "done": false })
}

fn last(reply: &Reply, text: &str) -> Value {
    let (input, output) = reply.usage;
    json!({
        "model": reply.model, "created_at": CREATED, "message": { "role": "assistant", "content": text },
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
