//! Messages of clients as lines.

mod numbers;
mod skills;

use std::sync::{Arc, Mutex};

use cog_run::{
    Runtime,
    provider::{FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderInfo, reply},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines},
    sync::oneshot,
    task::JoinSet,
};

use super::{CallSettings, ModuleServer};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "I like it."}}"#;

/// Reports a call that began, and one that was dropped.
type Calls = (oneshot::Sender<()>, oneshot::Sender<()>);

/// A provider that answers, or waits until its call is dropped.
struct Model {
    info: ProviderInfo,
    calls: Option<Mutex<Option<Calls>>>,
}

impl Provider for Model {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let waiting = self.calls.as_ref().and_then(|calls| calls.lock().unwrap().take());
        Box::pin(async move {
            if let Some((began, _dropped)) = waiting {
                began.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            Ok(reply([ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)]))
        })
    }
}

/// A client that writes lines, and reads those of the server.
struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    serving: JoinSet<Result<(), String>>,
}

impl Client {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(calls: Option<Calls>) -> Self {
        let calls = calls.map(|calls| Mutex::new(Some(calls)));
        let model = Model { info: ProviderInfo::new("yes", "yes-1"), calls };
        let runtime = Runtime::builder().provider(Arc::new(model)).build().unwrap();
        Self::start(ModuleServer::new(runtime, |_| Ok(CallSettings::default())).with_skills())
    }

    fn start(server: ModuleServer) -> Self {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (output, ours) = tokio::io::duplex(1 << 16);
        let mut serving = JoinSet::new();
        serving.spawn(server.serve_streams(theirs, output, std::future::pending()));
        Self { input, output: BufReader::new(ours).lines(), serving }
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.write(&message.to_string()).await;
    }

    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Sends a request of the current revision, and returns the response.
    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(request(id, method, params)).await;
        self.read().await
    }

    async fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        self.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        assert_eq!(self.read().await["result"]["protocolVersion"], "2025-11-25");
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }
}

fn request(id: u32, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn review() -> Value {
    json!({ "name": "code-reviewer", "arguments": { "code": "fn main() {}" } })
}

#[tokio::test]
async fn every_result_is_of_the_current_revision() {
    let mut client = Client::new();
    let discovered = client.ask(1, "server/discover", json!({})).await;
    assert_eq!(discovered["result"]["resultType"], "complete", "{discovered}");
    assert!(discovered["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{discovered}");
    let listed = client.ask(2, "tools/list", json!({})).await;
    assert!(listed["result"]["ttlMs"].is_number() && listed["result"]["cacheScope"].is_string(), "{listed}");
    let called = client.ask(3, "tools/call", review()).await;
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    let envelope = &called["result"]["structuredContent"];
    assert_eq!((&envelope["ok"], &envelope["data"]["verdict"]), (&json!(true), &json!("approve")));
    let text = called["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *envelope);
}

#[tokio::test]
async fn results_of_the_older_revision_have_no_type() {
    let mut client = Client::new();
    client.initialize().await;
    let mut params = review();
    params["_meta"] = json!({ "progressToken": "t" });
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let progress = client.read().await;
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    let mut called = progress;
    let mut last = 0.0;
    while called["method"] == "notifications/progress" {
        let number = called["params"]["progress"].as_f64().unwrap();
        assert!(number > last && called["params"]["progressToken"] == "t", "{called}");
        (last, called) = (number, client.read().await);
    }
    assert_eq!(called["result"]["structuredContent"]["ok"], true, "{called}");
    assert!(called["result"].get("resultType").is_none(), "{called}");
}

#[tokio::test]
async fn messages_out_of_order_do_not_end_the_connection() {
    let mut client = Client::new();
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.send(json!({ "jsonrpc": "2.0", "id": 7, "result": {} })).await;
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }))
        .await;
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    let early = client.read().await;
    assert_eq!((&early["id"], &early["error"]["code"]), (&json!(1), &json!(-32602)), "{early}");
    client.initialize().await;
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).await;
    assert!(client.read().await["result"]["tools"].is_array());
}

#[tokio::test]
async fn unknown_revision_is_an_error() {
    let mut client = Client::new();
    let mut unknown = request(1, "tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1999-01-01".into();
    client.send(unknown).await;
    let error = client.read().await;
    assert_eq!(error["error"]["code"], -32022, "{error}");
    assert!(client.ask(2, "tools/list", json!({})).await["result"]["tools"].is_array());
    let ping = client.ask(3, "ping", json!({})).await;
    assert_eq!(ping["error"]["code"], -32601, "a method of the older revision: {ping}");
}

#[tokio::test]
async fn invalid_and_oversized_lines_do_not_end_the_connection() {
    let mut client = Client::new();
    assert!(client.ask(1, "tools/list", json!({})).await["result"].is_object());
    client.write("{\"jsonrpc\": \"2.0\", \"id\": 2, ").await;
    client.write("\u{0}").await;
    let megabyte = "x".repeat(1 << 20);
    for _ in 0..100 {
        client.input.write_all(megabyte.as_bytes()).await.unwrap();
    }
    client.write("").await;
    assert_eq!(client.ask(3, "tools/list", json!({})).await["id"], 3);
}

#[tokio::test]
async fn half_a_message_ends_with_the_connection() {
    for half in ["", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/li"] {
        let mut client = Client::new();
        client.input.write_all(half.as_bytes()).await.unwrap();
        drop(client.input);
        assert_eq!(client.serving.join_next().await.unwrap().unwrap(), Ok(()));
        assert_eq!(client.output.next_line().await.unwrap(), None);
    }
}

#[tokio::test]
async fn wrong_calls_are_errors_with_codes() {
    let mut client = Client::new();
    let error = client.ask(1, "tools/call", json!({ "name": "code-reviewr" })).await;
    assert_eq!((&error["error"]["code"], &error["error"]["data"]["code"]), (&json!(-32602), &json!("E4006")));
    assert!(error["error"]["data"]["suggestion"].to_string().contains("code-reviewer"), "{error}");
    for name in ["../x", "", "/etc", "a b"] {
        let error = client.ask(2, "tools/call", json!({ "name": name })).await;
        assert_eq!(error["error"]["code"], -32602, "{name}: {error}");
    }
    let failed =
        client.ask(3, "tools/call", json!({ "name": "code-reviewer", "arguments": { "code": 7 } })).await;
    let result = &failed["result"];
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("E1003"))
    );
    let mut long = request(4, "tools/call", review());
    long["params"]["_meta"]["progressToken"] = "x".repeat(257).into();
    client.send(long).await;
    let error = client.read().await;
    assert_eq!((&error["error"]["code"], &error["error"]["data"]["code"]), (&json!(-32602), &json!("E1005")));
    let error = client.ask(4, "tools/list", json!({ "cursor": "x" })).await;
    assert_eq!(error["error"]["code"], -32602, "{error}");
    let mut with_state = review();
    with_state["requestState"] = "rs1.AAAA.BBBB".into();
    let error = client.ask(5, "tools/call", with_state).await;
    assert_eq!((&error["error"]["code"], &error["error"]["data"]["code"]), (&json!(-32602), &json!("E4014")));
}

#[tokio::test]
async fn cancelled_request_drops_the_call_of_the_model() {
    let ((began, beginning), (dropped, dropping)) = (oneshot::channel(), oneshot::channel());
    let mut client = Client::with(Some((began, dropped)));
    client.send(request(1, "tools/call", review())).await;
    beginning.await.unwrap();
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    assert!(dropping.await.is_err(), "the call was dropped, and with it the sender");
    assert_eq!(client.ask(2, "tools/call", review()).await["id"], 2, "the cancelled request has no response");
}

#[tokio::test]
async fn generated_image_is_content_and_not_text() {
    let server = ModuleServer::new(Runtime::offline(), |_| Ok(CallSettings::default()));
    let mut client = Client::start(server);
    let call = json!({ "name": "image-generator", "arguments": { "query": "a cat" } });
    let called = client.ask(1, "tools/call", call).await;
    let (content, image) =
        (&called["result"]["content"], &called["result"]["structuredContent"]["data"]["image"]);
    assert_eq!(
        (&content[1]["type"], &content[1]["mimeType"]),
        (&json!("image"), &image["media_type"]),
        "{called}"
    );
    assert_eq!(content[1]["data"], image["data"]);
    let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["data"]["image"]["data"], "content block 2");
}
