//! A server per test, with a mock of the model.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use cog_module::Finder;
use cog_provider::{
    Breaker, BreakerSettings, HttpProvider, Provider,
    vendors::{ModelPrice, ProviderSettings, Vendor},
};
use cog_run::{
    Runtime, RuntimeBuilder,
    sessions::{SessionSettings, Sessions},
};
use cog_server::{Metrics, Server, ServerSettings};
use cog_spec::Secret;
use cog_testkit::{Mock, Reply, Wire};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet, time::timeout};

use crate::empty_workbench::EmptyWorkbench;

/// The timeout of a hanging test. No step takes a tenth of it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The provider's key, which must never be visible.
pub(crate) const KEY: &str = "sk-canary-0123456789";

/// A server, its mock, and the directory of its modules: `m`, and `composed`, which calls it. Dropping it stops the server.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) mock: Mock,
    pub(crate) http: Client,
    pub(crate) shutdown: Option<oneshot::Sender<()>>,
    serving: JoinSet<()>,
    directory: TempDir,
}

impl Site {
    /// Starts a server with these settings. The mock sends these replies in order, and repeats the last one.
    pub(crate) async fn start(settings: ServerSettings, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_with(settings, replies, |runtime| runtime).await
    }

    /// Starts a server whose runtime is changed before.
    #[expect(clippy::disallowed_methods, reason = "a client of the tests")]
    pub(crate) async fn start_with(
        settings: ServerSettings,
        replies: impl IntoIterator<Item = Reply>,
        change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Self {
        let (mock, directory, metrics) = (Mock::start(replies), module(), Metrics::new());
        let runtime = Runtime::builder()
            .provider(Arc::new(Breaker::new(Arc::new(provider(&mock)), BreakerSettings::default())))
            .finder(Finder::new(directory.path(), vec![directory.path().to_owned()], None))
            .events(Arc::new(metrics.clone()));
        let runtime = change(runtime).build().unwrap();
        let sessions = Sessions::open(SessionSettings::default()).unwrap();
        let server = Server::new(settings, runtime, sessions)
            .with_metrics(metrics)
            .with_workbench(Arc::new(EmptyWorkbench), true);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, signal) = oneshot::channel::<()>();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let shutdown = async { drop(signal.await) };
            server.serve(listener, shutdown).await.unwrap();
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { address, mock, http: Client::new(), shutdown: Some(shutdown), serving, directory }
    }

    /// Writes a file below the directory of the modules: `m/schema.json`.
    #[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.http.get(self.url(path)).send().await.unwrap()
    }

    /// Runs the module.
    pub(crate) async fn run(&self) -> Response {
        self.execute(&question()).await
    }

    /// Runs the module as a stream of NDJSON.
    pub(crate) async fn stream(&self) -> Response {
        let request = self.http.post(self.url(EXECUTE)).header("accept", "application/x-ndjson");
        request.header("content-type", "application/json").body(question().to_string()).send().await.unwrap()
    }

    pub(crate) async fn execute(&self, body: &Value) -> Response {
        let request = self.http.post(self.url(EXECUTE)).header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Starts the shutdown of the server.
    pub(crate) fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has stopped.
    pub(crate) async fn ended(&mut self) {
        timeout(LONG, self.serving.join_next()).await.expect("the server hangs").unwrap().unwrap();
    }

    /// Waits until `GET /metrics` has this line.
    pub(crate) async fn counts(&self, line: &str) {
        let seen = async {
            loop {
                let text = self.get("/metrics").await.text().await.unwrap();
                if text.lines().any(|found| found == line) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, seen).await.unwrap_or_else(|_| panic!("never counted: {line}"));
    }
}

pub(crate) const EXECUTE: &str = "/v1/modules/m/execute";

/// A valid body for the module.
pub(crate) fn question() -> Value {
    json!({ "input": { "query": "why?" } })
}

/// A valid answer of the module.
pub(crate) fn answer() -> Reply {
    let data = json!({ "result": "fine", "rationale": "because" });
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    Reply::text(json!({ "ok": true, "meta": meta, "data": data }).to_string())
}

/// An answer that starts and never ends.
pub(crate) fn endless() -> Reply {
    let text = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
        "data": {"result": "begun, but"#;
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
    Reply::raw(format!("data: {delta}\n\n")).hang()
}

/// Returns the error code of an envelope.
pub(crate) async fn code(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let envelope: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, envelope["error"]["code"].as_str().unwrap_or("none").to_owned())
}

/// Reads a stream until it contains this text.
pub(crate) async fn until(response: &mut Response, text: &str) -> String {
    let mut received = String::new();
    while !received.contains(text) {
        let chunk = timeout(LONG, response.chunk()).await.expect("the stream hangs").unwrap();
        let chunk = chunk.unwrap_or_else(|| panic!("the stream ended without {text}: {received}"));
        received.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    received
}

/// A model whose price is known.
pub(crate) const PRICED: &str = "gpt-4o-mini";

fn provider(mock: &Mock) -> impl Provider + use<> {
    let settings = ProviderSettings {
        key: Some(Secret::new(KEY)),
        base_url: Some(mock.base_url(Wire::OpenAi)),
        model: Some("a-model".to_owned()),
        retries: 0,
        // A server at another address than the vendor's has only the prices of the operator.
        prices: [(
            PRICED.to_owned(),
            ModelPrice { input: 0.15, output: 0.6, cached_input: None, cache_write: None },
        )]
        .into_iter()
        .collect(),
        ..ProviderSettings::default()
    };
    HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
fn module() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let module = directory.path().join("m");
    std::fs::create_dir(&module).unwrap();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
                    response:\n  mode: both\n";
    let schema = json!({
        "input": { "type": "object", "required": ["query"], "properties": { "query": { "type": "string" } } },
        "data": { "type": "object", "required": ["result", "rationale"],
            "properties": { "result": { "type": "string" }, "rationale": { "type": "string" } } },
    });
    std::fs::write(module.join("module.yaml"), manifest).unwrap();
    std::fs::write(module.join("prompt.md"), "Answer.").unwrap();
    std::fs::write(module.join("schema.json"), schema.to_string()).unwrap();
    let composed = directory.path().join("composed");
    std::fs::create_dir(&composed).unwrap();
    let manifest = "name: composed\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
                    response:\n  mode: both\ncomposition:\n  dataflow:\n    - { from: input, to: m }\n    \
                    - { from: m.output, to: output }\n";
    std::fs::write(composed.join("module.yaml"), manifest).unwrap();
    std::fs::write(composed.join("schema.json"), schema.to_string()).unwrap();
    directory
}
