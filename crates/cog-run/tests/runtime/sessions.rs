//! Sessions: runs that outlive their readers.

mod disk;
mod life;
mod resume;
mod retention;
mod stored_media;
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_answer::verify::Kind;
use cog_json::Value;
use cog_module::{Finder, Module};
use cog_provider::Provider;
use cog_run::{
    ChunkStream, ModuleRef, RunContext, RunInput, RunOptions, Runtime, RuntimeBuilder,
    sessions::{
        ResumeError, ResumeFrom, RunSpec, Session, SessionOptions, SessionSettings, SessionState, Sessions,
        StartFrom, StoredRun, Subscriber,
    },
    tools::Tool,
};
use cog_spec::{FinishReason, ModelEvent};
use tempfile::TempDir;

use crate::support::{self, ANSWER, Scripted};

/// A provider, a module, and a store of sessions.
struct Bench {
    provider: Arc<Scripted>,
    runtime: Runtime,
    module: Arc<Module>,
    sessions: Sessions,
    /// The directory of the module `m`.
    directory: TempDir,
}

impl Bench {
    fn new(provider: Scripted, settings: SessionSettings) -> Self {
        Self::of(support::directory("Answer.", &[]), provider, settings)
    }

    fn of(module: TempDir, provider: Scripted, settings: SessionSettings) -> Self {
        Self::with_tools(module, provider, settings, Vec::new())
    }

    fn with_tools(
        module: TempDir,
        provider: Scripted,
        settings: SessionSettings,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::rename(module.keep(), directory.path().join("m")).unwrap();
        let provider = Arc::new(provider);
        let finder = Finder::new(".", vec![directory.path().to_owned()], None);
        let builder = Runtime::builder().provider(Arc::clone(&provider) as Arc<dyn Provider>).finder(finder);
        let builder = tools.into_iter().fold(builder, RuntimeBuilder::tool);
        let runtime = builder.reload_interval(std::time::Duration::ZERO).build().unwrap();
        let module = runtime.load(ModuleRef::Name("m")).unwrap();
        Self { provider, runtime, module, sessions: Sessions::open(settings).unwrap(), directory }
    }

    fn spec(&self) -> RunSpec {
        RunSpec::new("m", Value::parse(r#"{"query": "why?"}"#).unwrap())
    }

    fn start_with(&self, options: SessionOptions) -> Session {
        self.sessions.prepare(&self.runtime, &self.module, self.spec(), options).unwrap().start()
    }

    fn start(&self) -> Session {
        self.start_with(of("alice"))
    }

    /// Starts a run and reads it to its final event.
    async fn finish(&self) -> String {
        let session = self.start();
        read(session.follow(StartFrom::Beginning)).await;
        session.id().to_owned()
    }

    async fn resume(&self, id: &str, last_seq: u64) -> Result<Subscriber, ResumeError> {
        self.resume_with(id, ResumeFrom { last_seq, last_checkpoint: None }).await
    }

    async fn resume_with(&self, id: &str, from: ResumeFrom) -> Result<Subscriber, ResumeError> {
        self.sessions.resume(&self.runtime, id, "alice", from, RunOptions::default(), Box::new(())).await
    }

    fn state(&self, id: &str) -> Option<SessionState> {
        self.sessions.get(id, "alice").map(|info| info.state)
    }

    /// Returns the log of a session, and checks that it is a valid stream.
    async fn log(&self, id: &str) -> Vec<Line> {
        let lines = read(self.sessions.follow(id, "alice", StartFrom::Beginning).unwrap()).await;
        let text: String = lines.iter().map(|(_, _, line)| format!("{line}\n")).collect();
        let verdict = cog_answer::verify::verify(&text, Some(Kind::Stream), None);
        assert!(verdict.valid, "{:?}\n{text}", verdict.violations);
        lines
    }
}

/// An entry: event, `seq`, chunk.
type Line = (String, u64, String);

/// Returns the chunks of a run that is stored.
fn stored(bench: &Bench, run: &StoredRun, input: RunInput) -> ChunkStream {
    let options = run.options(&RunOptions::default());
    bench.runtime.prepare(&bench.module, input, options, run.context(RunContext::default())).unwrap()
}

fn code_of(error: &ResumeError) -> String {
    error.clone().into_envelope().error().unwrap().code.as_str().to_owned()
}

fn of(owner: &str) -> SessionOptions {
    SessionOptions { owner: owner.to_owned(), detached: false, permit: Box::new(()) }
}

fn detached() -> SessionOptions {
    SessionOptions { detached: true, ..of("alice") }
}

async fn read(mut follower: Subscriber) -> Vec<Line> {
    let mut lines = Vec::new();
    while read_batch(&mut follower, &mut lines).await {}
    lines
}

async fn read_batch(follower: &mut Subscriber, lines: &mut Vec<Line>) -> bool {
    let Some(batch) = follower.next().await else { return false };
    assert_eq!(batch.lines(), batch.entries().map(|entry| format!("{}\n", entry.json)).collect::<String>());
    lines.extend(batch.entries().map(|entry| (entry.event.to_owned(), entry.seq, entry.json.to_owned())));
    true
}

/// Reads until a numbered chunk arrives.
async fn read_some(follower: &mut Subscriber) -> Vec<Line> {
    let mut lines = Vec::new();
    while lines.last().is_none_or(|(_, seq, _)| *seq == 0) {
        assert!(read_batch(follower, &mut lines).await);
    }
    lines
}

/// Returns the events of a reply in chunks of this many characters.
fn text_events(text: &str, size: usize) -> Vec<ModelEvent> {
    let chars: Vec<char> = text.chars().collect();
    let text_events = chars.chunks(size).map(|part| ModelEvent::Text(part.iter().collect()));
    text_events.chain([ModelEvent::Finished(FinishReason::Stop)]).collect()
}

fn answer(rationale: &str) -> String {
    ANSWER.replace("because", rationale)
}

/// Applies the chunks of a stream in order, and returns the data.
fn applied(lines: &[Line]) -> serde_json::Value {
    let mut data = serde_json::json!({});
    for (_, _, line) in lines {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(chunk) = value.get("chunk") else { continue };
        match (chunk["field"].as_str(), chunk["delta"].as_str()) {
            (None, _) => data = chunk["data"].clone(),
            (Some(field), Some(delta)) => {
                let text = &mut data[field.strip_prefix("data.").unwrap()];
                *text = format!("{}{delta}", text.as_str().unwrap_or_default()).into();
            }
            (Some(field), None) => {
                if let Some(field) = field.strip_prefix("data.") {
                    data[field] = chunk["data"].clone();
                }
            }
        }
    }
    data
}

fn final_data(lines: &[Line]) -> serde_json::Value {
    let (event, _, line) = lines.last().unwrap();
    assert_eq!(event, "final", "{line}");
    serde_json::from_str::<serde_json::Value>(line).unwrap()["data"].take()
}

fn error_of(lines: &[Line]) -> serde_json::Value {
    let (event, _, line) = lines.last().unwrap();
    assert_eq!(event, "error", "{line}");
    serde_json::from_str::<serde_json::Value>(line).unwrap()["error"].take()
}

/// Returns the `partial_data` of the final event.
fn partial_of(lines: &[Line]) -> serde_json::Value {
    let (_, _, line) = lines.last().unwrap();
    serde_json::from_str::<serde_json::Value>(line).unwrap()["partial_data"].take()
}

/// A slot that counts its live instances.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(held: &Arc<AtomicUsize>) -> Box<Self> {
        held.fetch_add(1, Ordering::SeqCst);
        Box::new(Self(Arc::clone(held)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A pseudo-random generator with the same numbers in every run.
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}
