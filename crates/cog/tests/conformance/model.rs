//! The scripted model behind a case: a server that speaks a vendor's wire protocol.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::matching::merge;

/// What the model answers. Without `text` and `json` it is the base envelope with these changes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reply {
    meta: Value,
    data: Value,
    error: Value,
    json: Value,
    text: Option<String>,
    finish: Option<String>,
    refusal: Option<String>,
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    cut: Option<usize>,
    delay_ms: u64,
}

/// A model that listens on this machine until the case ends.
pub(crate) struct Model {
    address: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// Starts it.
    pub(crate) fn start(reply: &Reply, base: &Value) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (reply, text, seen) = (reply.clone(), reply.text(base), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &reply, &text, &seen);
            }
        });
        Ok(Self { address: format!("http://{address}"), requests })
    }

    /// What a user sets to reach it.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LLM_PROVIDER", "openai".to_owned()),
            ("OPENAI_API_KEY", "sk-test".to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", self.address)),
        ]
    }

    /// The bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().map(|requests| requests.clone()).unwrap_or_default()
    }
}

impl Reply {
    fn text(&self, base: &Value) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        if !self.json.is_null() {
            return self.json.to_string();
        }
        let mut envelope = base.clone();
        if !self.error.is_null() {
            merge(&mut envelope, &json!({ "ok": false, "error": self.error, "data": null }));
        }
        let changes = [("meta", &self.meta), ("data", &self.data)];
        let changes = changes.into_iter().filter(|(_, change)| !change.is_null());
        let changes = changes.map(|(key, change)| (key.to_owned(), change.clone()));
        merge(&mut envelope, &Value::Object(changes.collect()));
        envelope.to_string()
    }
}

fn answer(stream: TcpStream, reply: &Reply, text: &str, seen: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if let Ok(mut requests) = seen.lock() {
        requests.push(serde_json::from_slice(&body).unwrap_or_default());
    }
    std::thread::sleep(Duration::from_millis(reply.delay_ms));
    let mut stream = &stream;
    let status = reply.status.unwrap_or(200);
    let kind = if status == 200 { "text/event-stream" } else { "application/json" };
    write!(stream, "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\nconnection: close\r\n")?;
    for (name, value) in &reply.headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n")?;
    if status != 200 {
        return write!(stream, "{}", json!({ "error": { "message": "scripted failure" } }));
    }
    chat_completion(stream, reply, text)
}

fn chat_completion(mut stream: &TcpStream, reply: &Reply, text: &str) -> std::io::Result<()> {
    let mut event = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let chunk = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice] });
        write!(stream, "data: {chunk}\n\n")
    };
    if let Some(refusal) = &reply.refusal {
        event(json!({ "role": "assistant", "refusal": refusal }), None)?;
    } else {
        let letters: Vec<char> = text.chars().collect();
        let sent = reply.cut.unwrap_or(letters.len()).min(letters.len());
        for piece in letters.get(..sent).unwrap_or_default().chunks(40) {
            event(json!({ "content": piece.iter().collect::<String>() }), None)?;
        }
        if reply.cut.is_some() {
            return Ok(());
        }
    }
    event(json!({}), Some(reply.finish.as_deref().unwrap_or("stop")))?;
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let last = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [], "usage": usage });
    write!(stream, "data: {last}\n\ndata: [DONE]\n\n")
}
