//! Numbers of arguments and results.
#![expect(clippy::disallowed_methods, reason = "a module that is written here")]

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use cog_run::{
    Finder, Runtime, ToJson as _,
    provider::{
        FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo,
        WireRequest, reply,
    },
};
use http::{Request, header};
use http_body::Body as _;
use serde_json::json;
use tempfile::TempDir;

use super::{CallSettings, Client, ModuleServer};
use crate::{HttpSettings, McpHttp};

const NUMBERS: &str = r#"{"id":12345678901234567890123,"amount":3.14159265358979323846,"total":100.00}"#;

/// A provider whose answer has the numbers of the input, if it received them as they were written.
struct Echo(ProviderInfo);

impl Provider for Echo {
    fn info(&self) -> &ProviderInfo {
        &self.0
    }

    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let prompt: String = request.messages.messages().iter().map(|message| message.text()).collect();
        let numbers = ["12345678901234567890123", "3.14159265358979323846", "100.00"];
        let is_exact = numbers.iter().all(|number| prompt.contains(number));
        let meta = r#"{"confidence": 0.9, "risk": "none", "explain": "Fine."}"#;
        // The tier requires a rationale.
        let data = NUMBERS.replace('}', r#","rationale":"They are the same."}"#);
        let text = format!(r#"{{"ok": {is_exact}, "meta": {meta}, "data": {data}}}"#);
        Box::pin(async move { Ok(reply([ModelEvent::Text(text), ModelEvent::Finished(FinishReason::Stop)])) })
    }
}

fn server() -> (TempDir, ModuleServer) {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("echo");
    std::fs::create_dir_all(&place).unwrap();
    let manifest = "name: echo\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\n";
    std::fs::write(place.join("module.yaml"), manifest).unwrap();
    std::fs::write(place.join("prompt.md"), "Repeat: ${id} ${amount} ${total}\n").unwrap();
    let number = json!({ "type": "number" });
    let fields = json!({ "type": "object", "required": ["id", "amount", "total"],
        "properties": { "id": { "type": "integer" }, "amount": number, "total": number } });
    let schema = json!({ "input": fields, "data": fields });
    std::fs::write(place.join("schema.json"), schema.to_string()).unwrap();
    let finder = Finder::new("", vec![root.path().to_owned()], None);
    let provider = Arc::new(Echo(ProviderInfo::new("echo", "echo-1")));
    let runtime = Runtime::builder().finder(finder).provider(provider).build().unwrap();
    (root, ModuleServer::new(runtime, |_| Ok(CallSettings::default())))
}

fn call() -> String {
    let params = format!(r#"{{"name": "echo", "arguments": {NUMBERS}}}"#);
    format!(r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}"#)
}

/// Checks that a response has the numbers, in its structured content and in its text.
fn check(response: &str) {
    let data = format!(r#""data":{}"#, NUMBERS.trim_end_matches('}'));
    assert!(response.contains(&data), "{response}");
    assert!(response.contains(data.to_json().trim_matches('"')), "{response}");
}

#[tokio::test]
async fn numbers_pass_over_stdio_as_they_were_written() {
    let (_root, server) = server();
    let mut client = Client::start(server);
    client.initialize().await;
    client.write(&call()).await;
    check(&client.output.next_line().await.unwrap().unwrap());
}

#[tokio::test]
async fn numbers_pass_over_http_as_they_were_written() {
    let (_root, server) = server();
    let http = McpHttp::new(server, &HttpSettings::new(Duration::from_secs(10)));
    for with_progress in [false, true] {
        let token = r#""params": {"_meta": {"progressToken": 1}, "#;
        let body = if with_progress { call().replace(r#""params": {"#, token) } else { call() };
        let request = Request::post("/mcp")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        let response = http.handle(request.body(Bytes::from(body)).unwrap()).await;
        let mut body = pin!(response.into_body());
        let mut text = String::new();
        while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            text.push_str(str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap());
        }
        assert_eq!(text.contains("notifications/progress"), with_progress, "{text}");
        check(&text);
    }
}
