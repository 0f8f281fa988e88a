//! A server, a mock of the model, and clients.

use std::{sync::Arc, time::Duration};

use cog_json::Value;
use cog_media::Access;
use cog_module::{Finder, files::write_atomic};
use cog_provider::{
    HttpProvider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{
    RunOptions, Runtime,
    events::RunEvents,
    feedback::Feedback,
    sessions::{SessionSettings, Sessions},
};
use cog_server::{FeedbackReceipt, MediaStore, RunRecords, Server, ServerSettings};
use cog_spec::ErrorBody;
use cog_testkit::{Mock, Reply, Wire};
use reqwest::{RequestBuilder, Response};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
    task::JoinHandle,
};

use crate::empty_workbench::EmptyWorkbench;

/// A valid answer of the modules of a [`Stage`].
pub(crate) const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"result": "a text of some length, so that it comes in parts", "rationale": "because"}, "error": null}"#;
/// A valid body for them.
pub(crate) const BODY: &str = r#"{"input": {"query": "why?"}}"#;

/// The schemas of the input and the answer.
const TEXT: &str =
    r#"{"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}}"#;
const RESULT: &str = r#"{"type": "object", "required": ["result", "rationale"], "properties":
    {"result": {"type": "string"}, "rationale": {"type": "string"}}}"#;

/// A server over three modules that differ in their mode: `live` streams, `once` does not, `either` does both; one that generates
/// images, `draws`; and one that accepts them, `sees`.
pub(crate) struct Stage {
    pub(crate) mock: Mock,
    pub(crate) address: String,
    pub(crate) client: reqwest::Client,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) served: JoinHandle<Result<(), cog_server::SetupError>>,
    _directory: TempDir,
}

/// A log without runs: labels are read, and belong to none.
struct NoRuns;

impl RunRecords for NoRuns {
    fn listener(&self, _: &str, _: &str, _: &RunOptions) -> Arc<dyn RunEvents> {
        Arc::new(Silent)
    }

    fn label(
        &self,
        _: &str,
        _: &str,
        _: Feedback,
        _: &dyn Fn(&str, &Feedback) -> Result<(), ErrorBody>,
    ) -> Result<Option<FeedbackReceipt>, ErrorBody> {
        Ok(None)
    }
}

struct Silent;

impl RunEvents for Silent {}

impl Stage {
    /// Starts a stage whose model returns valid answers.
    pub(crate) async fn answering() -> Self {
        Self::start([Reply::text(ANSWER)]).await
    }

    /// Starts a stage whose model starts an answer and then hangs.
    pub(crate) async fn hanging() -> Self {
        Self::start([begun()]).await
    }

    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(replies, |_| {}).await
    }

    /// Starts a stage with other settings.
    pub(crate) async fn with(
        replies: impl IntoIterator<Item = Reply>,
        set: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::listening(listener, replies, set)
    }

    /// Starts a stage whose connections have small buffers, so that a client that does not read is noticed soon.
    pub(crate) fn with_small_buffers(
        replies: impl IntoIterator<Item = Reply>,
        set: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        // Accepted connections have the buffers of the listener.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(4096).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self::listening(socket.listen(16).unwrap(), replies, set)
    }

    fn listening(
        listener: TcpListener,
        replies: impl IntoIterator<Item = Reply>,
        set: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let mock = Mock::start(replies);
        let directory = tempfile::tempdir().unwrap();
        for (name, mode) in [("live", "streaming"), ("once", "sync"), ("either", "both")] {
            module(&directory, name, mode);
        }
        artist(&directory);
        viewer(&directory);
        let mut settings = ServerSettings::default();
        set(&mut settings);
        let sessions = Sessions::open(SessionSettings::default()).unwrap();
        let media = MediaStore::new(settings.uploads.clone(), None);
        let runtime = runtime(&mock, &directory, &media);
        let server = Server::new(settings, runtime, sessions)
            .with_media(media)
            .with_records(Arc::new(NoRuns))
            .with_workbench(Arc::new(EmptyWorkbench), true);
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { mock, address, client, stop: Some(stop), served, _directory: directory }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    /// Builds an execute request.
    pub(crate) fn execute(&self, module: &str, body: &str) -> RequestBuilder {
        let url = self.url(&format!("/v1/modules/{module}/execute"));
        self.client.post(url).header("content-type", "application/json").body(body.to_owned())
    }

    /// Runs a module and returns its NDJSON lines.
    pub(crate) async fn ndjson(&self, body: &str) -> Vec<Value> {
        let request = self.execute("live", body).header("accept", "application/x-ndjson");
        lines(&request.send().await.unwrap().text().await.unwrap())
    }
}

/// An answer that stops in the middle of `data.result`, and a connection that stays open.
pub(crate) fn begun() -> Reply {
    Reply::text(ANSWER).chunk_size(4).interrupt_after(6500).hang()
}

fn runtime(mock: &Mock, directory: &TempDir, media: &MediaStore) -> Runtime {
    let vendor = Vendor::by_name("openai").unwrap();
    let base = mock.base_url(Wire::OpenAi);
    let settings = ProviderSettings::from_variables(vendor, |name| match name {
        "OPENAI_BASE_URL" => Some(base.clone()),
        "OPENAI_API_KEY" => Some("sk-test".to_owned()),
        _ => None,
    });
    let provider = HttpProvider::new(vendor, ProviderSettings { retries: 0, ..settings }).unwrap();
    let finder = Finder::new(directory.path(), Vec::new(), None);
    let access = Access { uploads: Some(Arc::new(media.clone())), ..Access::default() };
    let builder = Runtime::builder().provider(Arc::new(provider)).finder(finder).media(access);
    builder.timeout(Duration::from_secs(20)).reload_interval(Duration::from_secs(3600)).build().unwrap()
}

fn module(directory: &TempDir, name: &str, mode: &str) {
    written(directory, name, &format!("response:\n  mode: {mode}\n"), (TEXT, RESULT));
}

/// Writes a module that accepts images: `input.photo` and `input.pages`.
fn viewer(directory: &TempDir) {
    let input = r##"{"type": "object", "required": ["photo"], "properties":
        {"query": {"type": "string"}, "photo": {"$ref": "#/$defs/MediaInput"},
            "pages": {"type": "array", "items": {"$ref": "#/$defs/MediaInput"}}}}"##;
    let manifest = "response:\n  mode: both\nmodalities:\n  input: [text, image]\n";
    written(directory, "sees", manifest, (input, RESULT));
}

/// Writes a module that generates images: `data.image`, and `data.rationale`.
fn artist(directory: &TempDir) {
    let data = r##"{"type": "object", "required": ["rationale"], "properties":
        {"image": {"$ref": "#/$defs/MediaOutput"}, "rationale": {"type": "string"}}}"##;
    let manifest = "response:\n  mode: both\nmodalities:\n  output: [text, image]\n";
    written(directory, "draws", manifest, (TEXT, data));
}

fn written(directory: &TempDir, name: &str, more: &str, (input, data): (&str, &str)) {
    let root = directory.path().join("cognitive/modules").join(name);
    std::fs::create_dir_all(&root).unwrap();
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Answer a question\nexcludes: []\ntier: decision\n\
         meta:\n  risk_rule: explicit\n{more}"
    );
    let schema = format!(r#"{{"input": {input}, "data": {data}}}"#);
    for (file, text) in
        [("module.yaml", manifest.as_str()), ("prompt.md", "Answer."), ("schema.json", schema.as_str())]
    {
        write_atomic(&root.join(file), text).unwrap();
    }
}

/// Returns the envelope of a response.
pub(crate) async fn envelope(response: Response) -> Value {
    let text = response.text().await.unwrap();
    Value::parse(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns `error.code`.
pub(crate) fn code(envelope: &Value) -> &str {
    envelope.pointer("/error/code").and_then(|code| code.as_str()).unwrap_or("none")
}

/// Sends a request and returns the status and the code of its failure.
pub(crate) async fn failure(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/json");
    let envelope = envelope(response).await;
    assert_eq!(envelope.get("ok").and_then(|ok| ok.as_bool()), Some(false));
    (status, code(&envelope).to_owned())
}

/// Parses lines of JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().filter(|line| !line.is_empty()).map(|line| Value::parse(line).unwrap()).collect()
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// Parses the events of a body.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let field = |block: &str, name: &str| {
        let found = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.map(str::to_owned).unwrap_or_else(|| panic!("no {name}: {block}"))
    };
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    blocks
        .map(|block| Event {
            event: field(block, "event"),
            id: field(block, "id"),
            data: Value::parse(&field(block, "data")).unwrap(),
        })
        .collect()
}

/// Returns the chunks without the session and the time, which differ from run to run.
pub(crate) fn comparable(chunks: &[Value]) -> Vec<String> {
    let mut texts = Vec::new();
    for chunk in chunks {
        let mut chunk = chunk.node().to_serde();
        if let Some(chunk) = chunk.as_object_mut() {
            chunk.remove("session_id");
            if let Some(meta) = chunk.get_mut("meta").and_then(|meta| meta.as_object_mut()) {
                meta.remove("processing_time_ms");
            }
        }
        texts.push(chunk.to_string());
    }
    texts
}
