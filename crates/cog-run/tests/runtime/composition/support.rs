//! Modules of a few lines, and a provider that replies by the name of the module.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_json::{ToJson as _, Value};
use cog_module::Finder;
use cog_run::{
    ModuleRef, RecoveryOffer, RunContext, RunInput, RunOptions, Runtime, RuntimeBuilder,
    provider::{
        Dialect, FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderInfo, ToolCallDelta,
        Usage, reply,
    },
    sessions::{SessionOptions, Subscriber},
};
use cog_spec::{Chunk, Envelope, Modality};
use tempfile::TempDir;

/// What the model replies for a module.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// An answer with this `result`, and this confidence and risk.
    Result(String, f64, &'static str),
    /// This text.
    Text(String),
    /// An answer with this `result`, after a time.
    Late(Duration, String),
    /// Nothing: the call never ends.
    Never,
    /// A call of this tool.
    Call(&'static str),
}

/// Returns the options of a session of this owner.
pub(crate) fn session_of(owner: &str) -> SessionOptions {
    SessionOptions { owner: owner.to_owned(), detached: false, permit: Box::new(()) }
}

pub(crate) fn result(text: &str) -> Says {
    Says::Result(text.to_owned(), 0.9, "low")
}

/// A provider with a reply for each module. Of several replies for a module, the last one repeats.
pub(crate) struct Script {
    info: ProviderInfo,
    replies: HashMap<String, Mutex<Vec<Says>>>,
    /// The modules that were called, with the user messages.
    calls: Mutex<Vec<(String, String)>>,
    open: Arc<AtomicUsize>,
    max_open: AtomicUsize,
}

/// Counts a call that is in flight.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Script {
    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the messages that a module received, one for each call.
    pub(crate) fn received(&self, module: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(name, _)| name == module).map(|(_, text)| text.clone()).collect()
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    pub(crate) fn max_open(&self) -> usize {
        self.max_open.load(Ordering::SeqCst)
    }

    fn next(&self, module: &str) -> Says {
        let Some(replies) = self.replies.get(module) else { return result(module) };
        let mut replies = replies.lock().unwrap();
        if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() }
    }
}

impl Provider for Script {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let module = request.output.as_ref().unwrap().name.clone();
        let text: Vec<String> = request.messages.messages().iter().map(|message| message.text()).collect();
        self.calls.lock().unwrap().push((module.clone(), text.join("\n")));
        let says = self.next(&module);
        if let Says::Call(tool) = says {
            return Box::pin(async move { Ok(reply(tool_call(tool))) });
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        self.max_open.fetch_max(self.open(), Ordering::SeqCst);
        let open = Open(Arc::clone(&self.open));
        Box::pin(async move {
            let _open = open;
            let answer = |text: &str, confidence: f64, risk: &str| {
                serde_json::json!({"ok": true, "meta": {"confidence": confidence, "risk": risk, "explain": "e"},
                    "data": {"result": text, "rationale": "because"}, "error": null}).to_string()
            };
            let text = match says {
                Says::Result(text, confidence, risk) => answer(&text, confidence, risk),
                Says::Text(text) => text,
                Says::Late(time, text) => {
                    tokio::time::sleep(time).await;
                    answer(&text, 0.9, "low")
                }
                Says::Never => std::future::pending().await,
                Says::Call(_) => String::new(),
            };
            let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
            let events =
                [ModelEvent::Text(text), ModelEvent::Finished(FinishReason::Stop), ModelEvent::Usage(usage)];
            Ok(reply(events))
        })
    }
}

/// A directory of modules, and a runtime for them.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) provider: Arc<Script>,
    pub(crate) runtime: Runtime,
}

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"query": {"type": "string"}, "extra": {}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {}, "rationale": {"type": "string"}, "more": {}}}}"#;

/// The steps of a composition that ends with the answer of its last part.
pub(crate) const MAP: &str = "mapping: {result: $.data.result, rationale: $.data.rationale}";

impl Bench {
    /// Creates the module `whole` with this composition and prompt, and parts of these names.
    pub(crate) fn new(composition: &str, prompt: &str, parts: &[&str], replies: &[(&str, &[Says])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut info = ProviderInfo::new("script", "one");
        info.dialect = Dialect::JsonSchema;
        info.input = &[Modality::Text, Modality::Image];
        info.formats.types = &["image/webp"];
        let replies =
            replies.iter().map(|(name, says)| ((*name).to_owned(), Mutex::new(says.to_vec()))).collect();
        let provider = Arc::new(Script {
            info,
            replies,
            calls: Mutex::default(),
            open: Arc::default(),
            max_open: AtomicUsize::new(0),
        });
        let runtime = builder(directory.path(), &provider).build().unwrap();
        let bench = Self { directory, provider, runtime };
        bench.module("whole", composition, prompt);
        parts.iter().for_each(|part| bench.module(part, "", "Answer."));
        bench
    }

    /// Returns a builder of a runtime for the modules, as another process has it.
    pub(crate) fn builder(&self) -> RuntimeBuilder {
        builder(self.directory.path(), &self.provider)
    }

    /// Creates the module `whole`, whose part `two` receives the answer of `one` and gives its own.
    pub(crate) fn two(replies: &[(&str, &[Says])]) -> Self {
        let composition = format!(
            "composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: one.output, to: two, mapping: {{query: $.data.result}}}}
    - {{from: two.output, to: output, {MAP}}}"
        );
        Self::new(&composition, "", &["one", "two"], replies)
    }

    /// Writes a module of the tier exploration with these lines in its manifest.
    pub(crate) fn module(&self, name: &str, manifest: &str, prompt: &str) {
        self.module_of("exploration", name, manifest, prompt);
    }

    /// Writes a module of a tier with these lines in its manifest.
    pub(crate) fn module_of(&self, tier: &str, name: &str, manifest: &str, prompt: &str) {
        let head = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: {tier}\nexcludes: [x]\n{manifest}\n"
        );
        for (file, text) in [("module.yaml", head.as_str()), ("prompt.md", prompt), ("schema.json", SCHEMA)] {
            self.file(name, file, text);
        }
    }

    /// Writes a file of a module.
    #[expect(clippy::disallowed_methods, reason = "a test writes its own files")]
    pub(crate) fn file(&self, module: &str, name: &str, text: &str) {
        let directory = self.directory.path().join(module);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(name), text).unwrap();
    }

    /// Reads a session until a module was called so many times.
    pub(crate) async fn read_until(&self, reader: &mut Subscriber, module: &str, calls: usize) {
        while self.provider.received(module).len() < calls {
            let _ = tokio::time::timeout(Duration::from_millis(5), reader.next()).await;
        }
    }

    /// Runs `whole` in another runtime.
    pub(crate) async fn run_in(&self, runtime: &Runtime, options: RunOptions) -> Envelope {
        let module = runtime.load(ModuleRef::Name("whole")).unwrap();
        runtime.run(&module, input(), options).await
    }

    /// Runs `whole`.
    pub(crate) async fn run(&self) -> Envelope {
        self.run_with(RunOptions { max_attempts: Some(1), ..RunOptions::default() }).await
    }

    pub(crate) async fn run_with(&self, options: RunOptions) -> Envelope {
        self.run_in(&self.runtime, options).await
    }

    /// Runs `whole` as a stream, and returns all chunks.
    pub(crate) async fn stream(&self, options: RunOptions) -> Vec<Chunk> {
        self.chunks(options, RunContext::default()).await
    }

    /// Runs `whole` as a stream that can be resumed, and returns all chunks.
    pub(crate) async fn stream_that_resumes(&self, options: RunOptions) -> Vec<Chunk> {
        let mut context = RunContext::default();
        context.recovery = Some(RecoveryOffer { retry_after_ms: 1, max_retries: 2 });
        self.chunks(options, context).await
    }

    async fn chunks(&self, options: RunOptions, context: RunContext) -> Vec<Chunk> {
        let module = self.runtime.load(ModuleRef::Name("whole")).unwrap();
        let mut stream = self.runtime.prepare(&module, input(), options, context).unwrap();
        let mut chunks = Vec::new();
        while let Some(chunk) = stream.next().await {
            chunks.push(chunk);
        }
        chunks
    }
}

fn builder(directory: &std::path::Path, provider: &Arc<Script>) -> RuntimeBuilder {
    Runtime::builder()
        .provider(Arc::clone(provider) as Arc<dyn Provider>)
        .finder(Finder::new(".", vec![directory.to_owned()], None))
        .reload_interval(Duration::ZERO)
        .max_parallel_parts(4)
}

/// Returns the events of a reply that calls a tool.
fn tool_call(tool: &str) -> [ModelEvent; 3] {
    let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
    let call = ToolCallDelta {
        index: 0,
        id: Some("call_1".to_owned()),
        name: Some(tool.to_owned()),
        arguments: r#"{"name": "prod"}"#.to_owned(),
        signature: None,
    };
    [ModelEvent::ToolCall(call), ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::ToolCalls)]
}

pub(crate) fn input() -> RunInput {
    RunInput::Json(Value::parse(r#"{"query": "why?"}"#).unwrap())
}

pub(crate) fn code(envelope: &Envelope) -> &str {
    envelope.error().map_or("ok", |error| error.code.as_str())
}

/// Returns `path status` for each part of `meta.parts`.
pub(crate) fn parts(envelope: &Envelope) -> Vec<String> {
    envelope.meta.runtime.parts.iter().map(|part| format!("{} {}", part.path, part.status)).collect()
}

/// Returns `partial_data` as JSON; null if there is none.
pub(crate) fn partial_data(envelope: &Envelope) -> serde_json::Value {
    let json = Value::parse(&envelope.to_json()).unwrap();
    json.get("partial_data").map(|data| data.to_serde()).unwrap_or_default()
}

/// Returns `data.result` as text.
pub(crate) fn answer(envelope: &Envelope) -> String {
    let data = envelope.data().unwrap_or_else(|| panic!("{:?}", envelope.error()));
    let result = data.get("result").unwrap();
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}
