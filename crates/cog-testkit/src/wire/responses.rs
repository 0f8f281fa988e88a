use serde_json::{Value, json};

use crate::{Finish, Reply, reply::ToolCall};

const ID: &str = "resp_mock";
const MESSAGE: &str = "msg_mock";
const REASONING: &str = "rs_mock";
const CREATED: u64 = 1_790_000_000;

pub(super) fn stream(reply: &Reply) -> Vec<String> {
    let mut events = Events::default();
    let started = response(reply, "in_progress", &[]);
    events.add("response.created", json!({ "response": started }));
    events.add("response.in_progress", json!({ "response": started }));
    if !reply.reasoning.is_empty() {
        events.reasoning(reply);
    }
    if reply.has_text() {
        events.message(reply);
    }
    reply.tool_calls.iter().for_each(|call| events.call(reply, call));
    if let Some(message) = &reply.error {
        events.add("error", json!({ "code": "server_error", "message": message, "param": null }));
    } else {
        events.add(&format!("response.{}", status(reply)), json!({ "response": complete(reply) }));
    }
    events.all
}

pub(super) fn complete(reply: &Reply) -> Value {
    response(reply, status(reply), &items(reply))
}

/// The events so far, each with its sequence number and the index of its item.
#[derive(Default)]
struct Events {
    all: Vec<String>,
    items: usize,
}

impl Events {
    fn add(&mut self, kind: &str, fields: Value) {
        let mut event = json!({ "type": kind, "sequence_number": self.all.len() });
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        self.all.push(format!("event: {kind}\ndata: {event}\n\n"));
    }

    /// Adds an event about a part of an item.
    fn add_part(&mut self, kind: &str, (id, index): (&str, &str), mut fields: Value) {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("item_id".to_owned(), id.into());
            fields.insert("output_index".to_owned(), self.items.into());
            fields.insert(index.to_owned(), 0.into());
        }
        self.add(kind, fields);
    }

    fn item(&mut self, kind: &str, item: &Value) {
        self.add(kind, json!({ "output_index": self.items, "item": item }));
    }

    fn reasoning(&mut self, reply: &Reply) {
        let part = (REASONING, "summary_index");
        self.item(
            "response.output_item.added",
            &json!({ "id": REASONING, "type": "reasoning", "summary": [] }),
        );
        self.add_part("response.reasoning_summary_part.added", part, summary_part(""));
        for chunk in reply.reasoning_chunks() {
            self.add_part("response.reasoning_summary_text.delta", part, json!({ "delta": chunk }));
        }
        self.add_part("response.reasoning_summary_text.done", part, json!({ "text": reply.reasoning }));
        self.add_part("response.reasoning_summary_part.done", part, summary_part(&reply.reasoning));
        self.item("response.output_item.done", &reasoning_item(reply));
        self.items += 1;
    }

    fn call(&mut self, reply: &Reply, call: &ToolCall) {
        let id = item_id(call);
        self.item("response.output_item.added", &call_item(call, "in_progress", ""));
        for chunk in reply.argument_chunks(call) {
            let fields = json!({ "item_id": id, "output_index": self.items, "delta": chunk });
            self.add("response.function_call_arguments.delta", fields);
        }
        let done = json!({
            "item_id": id, "output_index": self.items, "name": call.name, "arguments": call.arguments,
        });
        self.add("response.function_call_arguments.done", done);
        self.item("response.output_item.done", &call_item(call, "completed", &call.arguments));
        self.items += 1;
    }

    fn message(&mut self, reply: &Reply) {
        let part = (MESSAGE, "content_index");
        let empty = match reply.refusal {
            Some(_) => json!({ "type": "refusal", "refusal": "" }),
            None => json!({ "type": "output_text", "annotations": [], "text": "" }),
        };
        self.item("response.output_item.added", &message_item("in_progress", &[]));
        self.add_part("response.content_part.added", part, json!({ "part": empty }));
        if let Some(explanation) = &reply.refusal {
            self.add_part("response.refusal.delta", part, json!({ "delta": explanation }));
            self.add_part("response.refusal.done", part, json!({ "refusal": explanation }));
        } else {
            for chunk in reply.text_chunks() {
                self.add_part("response.output_text.delta", part, json!({ "delta": chunk, "logprobs": [] }));
            }
            self.add_part("response.output_text.done", part, json!({ "text": reply.text, "logprobs": [] }));
        }
        self.add_part("response.content_part.done", part, json!({ "part": content(reply) }));
        self.item("response.output_item.done", &message_item("completed", &[content(reply)]));
        self.items += 1;
    }
}

fn items(reply: &Reply) -> Vec<Value> {
    let reasoning = (!reply.reasoning.is_empty()).then(|| reasoning_item(reply));
    let message = reply.has_text().then(|| message_item("completed", &[content(reply)]));
    let calls = reply.tool_calls.iter().map(|call| call_item(call, "completed", &call.arguments));
    reasoning.into_iter().chain(message).chain(calls).collect()
}

fn call_item(call: &ToolCall, status: &str, arguments: &str) -> Value {
    json!({
        "id": item_id(call), "type": "function_call", "status": status, "call_id": call.id, "name": call.name,
        "arguments": arguments,
    })
}

/// Returns the identifier of the item of a call.
fn item_id(call: &ToolCall) -> String {
    format!("fc_{}", call.id)
}

fn reasoning_item(reply: &Reply) -> Value {
    json!({
        "id": REASONING, "type": "reasoning", "encrypted_content": "b3BhcXVl",
        "summary": [{ "type": "summary_text", "text": reply.reasoning }],
    })
}

fn message_item(status: &str, content: &[Value]) -> Value {
    json!({ "id": MESSAGE, "type": "message", "role": "assistant", "status": status, "content": content })
}

fn content(reply: &Reply) -> Value {
    match &reply.refusal {
        Some(explanation) => json!({ "type": "refusal", "refusal": explanation }),
        None => json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": reply.text }),
    }
}

fn response(reply: &Reply, status: &str, output: &[Value]) -> Value {
    let is_complete = status != "in_progress";
    let reason = incomplete_reason(reply).filter(|_| is_complete);
    json!({
        "id": ID, "object": "response", "created_at": CREATED, "status": status, "model": reply.model,
        "output": output, "error": null, "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "top_p": 1.0,
        "tool_choice": "auto", "tools": [], "usage": is_complete.then(|| usage(reply)),
    })
}

fn status(reply: &Reply) -> &'static str {
    if incomplete_reason(reply).is_some() { "incomplete" } else { "completed" }
}

fn incomplete_reason(reply: &Reply) -> Option<&str> {
    match &reply.finish {
        Finish::Stop => None,
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter => Some("content_filter"),
        Finish::Other(reason) => Some(reason),
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = reply.usage;
    json!({
        "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens_details": { "reasoning_tokens": 0 },
    })
}

fn summary_part(text: &str) -> Value {
    json!({ "part": { "type": "summary_text", "text": text } })
}
