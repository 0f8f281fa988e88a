//! `cog worker` with a real nats-server.
//!
//! `cargo xtask test` installs the server beside the interpreter that `COG_TEST_PYTHON` names.

#![expect(clippy::disallowed_methods, reason = "modules and settings that are written here")]

mod batches;
mod faults;
mod jobs;
mod security;
mod server;
mod servers;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

use async_nats::jetstream;
use cog_json::Value;
use cog_nats::{Job, JobId, Names, NatsOptions, Queue, QueueSettings, connect};
use cog_testkit::{Mock, Wire};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) use self::server::Nats;

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// Waits until a condition holds.
fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A directory with the module `m`.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let module = place.path().join("modules/m");
    std::fs::create_dir_all(&module).unwrap();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
        response: { mode: streaming }\n";
    std::fs::write(module.join("module.yaml"), manifest).unwrap();
    std::fs::write(module.join("prompt.md"), "Answer this: $ARGUMENTS\n").unwrap();
    std::fs::write(module.join("schema.json"), SCHEMA).unwrap();
    place
}

/// Returns the program in this directory, with a model that replies as the mock.
fn cog(place: &Path, mock: &Mock, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
    command
        .args(args)
        .current_dir(place)
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("COG_RETRIES", "0")
        .env("COG_BREAKER_FAILURES", "0")
        .env("COG_NATS_ACK_WAIT", "2s")
        .env("COGNITIVE_MODULES_PATH", place.join("modules"))
        .env("HOME", place.join("home"))
        .env("LLM_PROVIDER", "openai")
        .env("LLM_MODEL", "gpt-4.1")
        .env("OPENAI_API_KEY", "sk-canary")
        .env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

/// A running worker.
struct Working {
    child: Child,
    messages: BufReader<ChildStderr>,
}

impl Working {
    /// Starts a worker, and waits until it waits for jobs.
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("waiting for jobs") {
            assert_ne!(messages.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
        Self { child, messages }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the end, and returns the exit code and the rest of the messages.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.messages.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// Ends the worker with SIGTERM, and returns its messages.
    fn stop(self) -> String {
        self.signal("TERM");
        let (code, messages) = self.ended();
        assert_eq!(code, Some(0), "{messages}");
        messages
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A client of the queue.
struct Client {
    runtime: Runtime,
    queue: Queue,
    context: jetstream::Context,
}

impl Client {
    fn new(nats: &Nats) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut options = NatsOptions::default();
        options.url = nats.url();
        let (queue, context) = runtime.block_on(async {
            let client = connect(&options).await.unwrap();
            let context = jetstream::new(client.clone());
            let names = Names::new("cog").unwrap();
            let mut settings = QueueSettings::default();
            settings.ack_wait = Duration::from_secs(2);
            (Queue::open(client, names, settings).await.unwrap(), context)
        });
        Self { runtime, queue, context }
    }

    fn add(&self, id: &str, query: &str) {
        let input = Value::from(serde_json::json!({ "query": query }));
        self.runtime.block_on(self.queue.add(&id_of(id), "test", &Job::new("m", input))).unwrap();
    }

    /// Publishes any text as a job.
    fn publish(&self, id: Option<&str>, text: &str) {
        let mut headers = async_nats::HeaderMap::new();
        if let Some(id) = id {
            headers.insert("Nats-Msg-Id", id);
        }
        self.runtime.block_on(async {
            let sent = self.context.publish_with_headers("cog.jobs.test", headers, text.to_owned().into());
            sent.await.unwrap().await.unwrap();
        });
    }

    /// Waits for the envelope of a job.
    fn envelope(&self, id: &str) -> serde_json::Value {
        eventually(id, || {
            let found = self.runtime.block_on(self.queue.result(&id_of(id)));
            Some(found.ok()??.envelope.to_serde())
        })
    }

    /// Returns the number of messages in a stream.
    fn messages(&self, stream: &str) -> Option<u64> {
        self.runtime.block_on(async {
            let mut stream = self.context.get_stream(stream).await.ok()?;
            Some(stream.info().await.ok()?.state.messages)
        })
    }

    /// Returns how many jobs the workers have received, again or not.
    fn deliveries(&self) -> u64 {
        self.runtime.block_on(async {
            let stream = self.context.get_stream("cog-jobs").await.unwrap();
            let consumer =
                stream.get_consumer::<async_nats::jetstream::consumer::pull::Config>("workers").await;
            consumer.map_or(0, |consumer| consumer.cached_info().delivered.consumer_sequence)
        })
    }

    /// Waits until every job is acknowledged.
    fn all_done(&self) {
        eventually("jobs that are not acknowledged", || {
            self.messages("cog-jobs").filter(|count| *count == 0)
        });
    }
}

fn id_of(id: &str) -> JobId {
    JobId::new(id).unwrap()
}
