//! The model of the cases: a server for the OpenAI Chat Completions protocol with scripted replies.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The name of the model.
pub(super) const MODEL: &str = "conformance";
/// The characters of one chunk of a reply.
const CHUNK: usize = 24;

/// The replies of the model, and the requests that it received. All clones are the same model.
#[derive(Debug, Clone, Default)]
pub(super) struct Model(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    /// The replies in order; the last one repeats.
    replies: Vec<Value>,
    requests: Vec<Value>,
}

impl Model {
    /// Sets the replies, and forgets the requests.
    pub(super) fn begin(&self, replies: Vec<Value>) {
        *self.script() = Script { replies, requests: Vec::new() };
    }

    /// Returns the bodies of the requests since [`Self::begin`].
    pub(super) fn requests(&self) -> Vec<Value> {
        self.script().requests.clone()
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reply to a request.
    fn next(&self, request: Value) -> Option<Value> {
        let mut script = self.script();
        let index = script.requests.len();
        script.requests.push(request);
        script.replies.get(index).or_else(|| script.replies.last()).cloned()
    }

    /// Serves the model until the future is dropped.
    pub(super) async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        let models =
            || async { Json(json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] })) };
        let routes = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .with_state(self);
        axum::serve(listener, routes).await
    }
}

/// Returns the base URL of a model at a socket.
pub(super) fn base_url(socket: SocketAddr) -> String {
    format!("http://{socket}/v1")
}

async fn complete(State(model): State<Model>, Json(request): Json<Value>) -> Response {
    let is_stream = request.get("stream").and_then(Value::as_bool) == Some(true);
    let Some(reply) = model.next(request) else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "there is no reply for this request");
    };
    if let Some(status) = reply.get("status").and_then(Value::as_u64) {
        let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        let message = reply.get("message").and_then(Value::as_str).unwrap_or_default();
        return error(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message);
    }
    if is_stream { stream(&reply) } else { Json(completion(&reply)).into_response() }
}

fn error(status: StatusCode, message: &str) -> Response {
    let body =
        json!({ "error": { "message": message, "type": "server_error", "param": null, "code": null } });
    (status, [(header::RETRY_AFTER, "0")], Json(body)).into_response()
}

/// The parts of a reply.
struct Parts {
    text: String,
    refusal: Option<String>,
    calls: Vec<Value>,
    finish: String,
}

impl Parts {
    fn new(reply: &Value) -> Self {
        let string = |key: &str| reply.get(key).and_then(Value::as_str).map(str::to_owned);
        let text = match reply.get("text") {
            Some(Value::String(text)) => text.clone(),
            Some(answer) => answer.to_string(),
            None => String::new(),
        };
        let calls = reply.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate();
        let calls: Vec<Value> = calls.map(|(index, call)| tool_call(index, call)).collect();
        let default = if calls.is_empty() { "stop" } else { "tool_calls" };
        let finish = string("finish").unwrap_or_else(|| default.to_owned());
        Self { text, refusal: string("refusal"), calls, finish }
    }
}

fn tool_call(index: usize, call: &Value) -> Value {
    let arguments = call.get("arguments").map(ToString::to_string).unwrap_or_default();
    let function = json!({ "name": call.get("name"), "arguments": arguments });
    json!({ "index": index, "id": format!("call_mock_{index}"), "type": "function", "function": function })
}

fn usage() -> Value {
    json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 })
}

fn completion(reply: &Value) -> Value {
    let Parts { text, refusal, calls, finish } = Parts::new(reply);
    let mut message = json!({ "role": "assistant", "content": text, "refusal": refusal });
    if let (false, Some(members)) = (calls.is_empty(), message.as_object_mut()) {
        members.insert("tool_calls".to_owned(), calls.into());
    }
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish });
    json!({ "id": "chatcmpl-conformance", "object": "chat.completion", "created": 0, "model": MODEL,
        "choices": [choice], "usage": usage() })
}

fn stream(reply: &Value) -> Response {
    let Parts { text, refusal, calls, finish } = Parts::new(reply);
    let characters: Vec<char> = text.chars().collect();
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    deltas.extend(refusal.map(|refusal| json!({ "refusal": refusal })));
    deltas.extend(characters.chunks(CHUNK).map(|part| json!({ "content": part.iter().collect::<String>() })));
    deltas.extend(calls.into_iter().map(|call| json!({ "tool_calls": [call] })));
    let mut events: String = deltas.into_iter().map(|delta| event(&delta, &Value::Null)).collect();
    events += &event(&json!({}), &json!(finish));
    let last = json!({ "id": "chatcmpl-conformance", "object": "chat.completion.chunk", "created": 0,
        "model": MODEL, "choices": [], "usage": usage() });
    events += &format!("data: {last}\n\ndata: [DONE]\n\n");
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from(events)).into_response()
}

fn event(delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
    let chunk = json!({ "id": "chatcmpl-conformance", "object": "chat.completion.chunk", "created": 0,
        "model": MODEL, "choices": [choice] });
    format!("data: {chunk}\n\n")
}
