//! A scripted provider, and a module to run.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use cog_json::Value;
use cog_module::Module;
use cog_provider::{
    ModelFuture, ModelRequest, ModelStream, Provider, ProviderError, ProviderInfo, RequestError,
    vendors::{MediaModel, ToolSettings},
};
use cog_run::{RunContext, RunInput, RunOptions, Runtime, sessions::RunRecord};
use cog_spec::{Dialect, Envelope, FinishReason, Modality, ModelEvent};
use futures_util::{StreamExt as _, stream};
use tempfile::TempDir;

/// An answer that matches the schema of the module of [`directory`].
pub(crate) const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"result": "fine", "rationale": "because"}, "error": null}"#;

/// A provider that sends its replies in turn, then repeats the last one, and records its requests.
pub(crate) struct Scripted {
    info: ProviderInfo,
    error: Option<ProviderError>,
    replies: Mutex<VecDeque<Vec<ModelEvent>>>,
    hangs: bool,
    panics: bool,
    rejected: Option<&'static str>,
    requests: Mutex<Vec<ModelRequest>>,
    open: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) fn new(replies: impl IntoIterator<Item = Vec<ModelEvent>>) -> Self {
        let replies = Mutex::new(replies.into_iter().collect());
        let mut info = ProviderInfo::new("scripted", "one");
        info.dialect = Dialect::JsonSchema;
        info.media_models = vec![MediaModel { output: &[Modality::Image], ..MediaModel::ANY }].into();
        Self {
            info,
            error: None,
            replies,
            hangs: false,
            panics: false,
            rejected: None,
            requests: Mutex::default(),
            open: Arc::default(),
        }
    }

    pub(crate) fn replying(text: &str) -> Self {
        Self::replying_in_turn([text])
    }

    pub(crate) fn replying_in_turn<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let reply =
            |text: &str| vec![ModelEvent::Text(text.to_owned()), ModelEvent::Finished(FinishReason::Stop)];
        Self::new(texts.into_iter().map(reply))
    }

    /// Sends this text and then hangs.
    pub(crate) fn hanging(text: &str) -> Self {
        Self { hangs: true, ..Self::new([vec![ModelEvent::Text(text.to_owned())]]) }
    }

    /// Fails every call.
    pub(crate) fn failing(error: ProviderError) -> Self {
        Self { error: Some(error), ..Self::new([]) }
    }

    /// Sets the name of the provider.
    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.info.name = name.into();
        self
    }

    /// Has the prices of this list for this model.
    pub(crate) fn priced(mut self, list: &'static str, model: &'static str) -> Self {
        (self.info.prices, self.info.model) = (Some(list), model.into());
        self
    }

    /// Uses tools as these entries say, and may have only text in results.
    pub(crate) fn using_tools(mut self, tools: &'static [ToolSettings], text_results: bool) -> Self {
        (self.info.tools, self.info.text_results) = (tools, text_results);
        self
    }

    /// Has the context window of this model.
    pub(crate) fn with_window_of(mut self, list: &'static str, model: &'static str) -> Self {
        (self.info.context_windows, self.info.model) = (Some(list), model.into());
        self
    }

    /// Rejects this parameter of the generation.
    pub(crate) fn rejecting(mut self, option: &'static str) -> Self {
        self.rejected = Some(option);
        self
    }

    /// Receives schemas in this dialect.
    pub(crate) fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.info.dialect = dialect;
        self
    }

    /// Accepts images of these types.
    pub(crate) fn accepting_images(mut self, images: &'static [&'static str]) -> Self {
        self.info.input = &[Modality::Text, Modality::Image];
        self.info.formats.types = images;
        self
    }

    /// Generates media of these kinds.
    pub(crate) fn generating(mut self, output: &'static [Modality]) -> Self {
        self.info.media_models = vec![MediaModel { output, ..MediaModel::ANY }].into();
        self
    }

    /// Sends its events, but does not close a reply without a final event.
    pub(crate) fn hanging_after_reply(self) -> Self {
        Self { hangs: true, ..self }
    }

    /// Panics when it is called.
    pub(crate) fn panicking() -> Self {
        Self { panics: true, ..Self::new([]) }
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the number of replies that were not dropped yet.
    pub(crate) fn open_replies(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Provider for Scripted {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn check(&self, request: &ModelRequest) -> Result<(), ProviderError> {
        let rejected = request.generation.names().find(|name| Some(*name) == self.rejected);
        rejected.map_or(Ok(()), |option| {
            Err(RequestError::Option { vendor: "One", model: "one".to_owned(), option }.into())
        })
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        if let Err(error) = self.check(request) {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.requests.lock().unwrap().push(request.clone());
        if let Some(error) = &self.error {
            return Box::pin(std::future::ready(Err(error.clone())));
        }
        assert!(!self.panics, "this provider panics");
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        self.open.fetch_add(1, Ordering::SeqCst);
        let held = Held(Arc::clone(&self.open));
        let reply = reply.unwrap_or_default();
        let hangs = self.hangs && !matches!(reply.last(), Some(ModelEvent::Finished(_)));
        let events = stream::iter(reply).then(async |event| {
            tokio::task::yield_now().await;
            Ok(event)
        });
        let events: ModelStream = if hangs {
            Box::pin(events.chain(stream::pending()).inspect(move |_| drop_later(&held)))
        } else {
            Box::pin(events.inspect(move |_| drop_later(&held)))
        };
        Box::pin(std::future::ready(Ok(events)))
    }
}

/// Captures the guard in the closure that calls this.
fn drop_later(_: &Held) {}

/// Creates a v2.2 module of tier decision in its own directory, with these additional manifest lines.
pub(crate) fn directory(prompt: &str, manifest: &[&str]) -> TempDir {
    let directory = tempfile::Builder::new().prefix("module").tempdir().unwrap();
    let head =
        ["name: m", "version: 1.0.0", "responsibility: Answer", "tier: decision", "excludes: [guessing]"];
    let lines: Vec<_> = head.iter().chain(manifest).copied().collect();
    write(&directory, "module.yaml", &lines.join("\n"));
    write(&directory, "prompt.md", prompt);
    write(
        &directory,
        "schema.json",
        r#"{"input": {"type": "object", "required": ["query"],
                "properties": {"query": {"type": "string"}, "count": {"type": "integer"}}},
            "data": {"type": "object", "required": ["result", "rationale"],
                "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#,
    );
    directory
}

/// Writes a file of the module.
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
pub(crate) fn write(directory: &TempDir, name: &str, text: &str) {
    std::fs::write(directory.path().join(name), text).unwrap();
}

pub(crate) fn input(text: &str) -> RunInput {
    RunInput::Json(Value::parse(text).unwrap())
}

/// Returns an input for the module of [`directory`].
pub(crate) fn sample_input() -> RunInput {
    input(r#"{"query": "why?"}"#)
}

/// Returns a runtime with this provider, and loads the module of the directory.
pub(crate) fn runtime_with(provider: Scripted, directory: &TempDir) -> (Arc<Scripted>, Runtime, Arc<Module>) {
    let provider = Arc::new(provider);
    let runtime = Runtime::builder().provider(Arc::clone(&provider) as Arc<dyn Provider>).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    (provider, runtime, module)
}

/// Runs the module of [`directory`] within a context.
pub(crate) async fn run_in(
    runtime: &Runtime,
    module: &Arc<Module>,
    options: RunOptions,
    context: RunContext,
) -> Envelope {
    match runtime.prepare(module, sample_input(), options, context) {
        Ok(chunks) => chunks.fold().await,
        Err(refused) => *refused,
    }
}

pub(crate) fn code(envelope: &Envelope) -> Option<&str> {
    envelope.error().map(|error| error.code.as_str())
}

/// Returns the record of a run of the module `m`.
pub(crate) fn record_of(input: RunInput, options: RunOptions) -> RunRecord {
    RunRecord {
        module: "m".to_owned(),
        input,
        options,
        provider: None,
        model: None,
        is_trusted_for_run: false,
    }
}
