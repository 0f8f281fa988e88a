//! Measures the runtime's own time for a round of tool calls, and for many tools.
//!
//! `cargo bench -p cog-run --bench tools` prints the processor time of a run with one round, of one with the same tools and
//! no round, of one with [`MANY`] tools, and the differences. It fails when a round takes more than [`MAX`] microseconds, or the
//! tools take more than [`MAX_MANY`].

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and stops when it cannot run"
)]

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use cog_json::Value;
use cog_module::{Finder, Module};
use cog_run::{
    RunInput, RunOptions, Runtime,
    provider::{
        Dialect, FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderInfo, ToolCallDelta,
        reply,
    },
    tools::ToolInfo,
};
use serde_json::json;

/// The duration of each measurement in a round; the best of [`ROUNDS`] counts.
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: u32 = 5;
/// The maximum processor time of a round, in microseconds.
const MAX: f64 = 200.0;
/// The number of many tools, and the maximum processor time that they add to a run, in microseconds.
const MANY: usize = 200;
const MAX_MANY: f64 = 1_000.0;

const MANIFEST: &str = "name: m
version: 1.0.0
responsibility: Answer
tier: decision
excludes: [guessing]
policies: { tools_allowed: true }
tools: { policy: allow_by_default }
";
const SCHEMA: &str = r#"{
    "input": {"type": "object", "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;
const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "because"}, "error": null}"#;

fn main() -> ExitCode {
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("module.yaml", MANIFEST), ("prompt.md", "Do it."), ("schema.json", SCHEMA)] {
        cog_module::files::write_atomic(&directory.path().join(name), text).unwrap();
    }
    let measure = |has_round, tools| {
        let runtime = runtime(has_round, tools);
        let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
        best(|| events.block_on(run(&runtime, &module)))
    };
    let without = measure(false, 1);
    let with = measure(true, 1);
    let many = measure(false, MANY);
    println!("a run without a round {without:6.1} µs");
    println!("a run with a round    {with:6.1} µs");
    println!("the round             {:6.1} µs (maximum {MAX} µs)", with - without);
    println!("{MANY} tools             {:6.1} µs (maximum {MAX_MANY} µs)", many - without);
    if with - without <= MAX && many - without <= MAX_MANY { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Creates a runtime with tools, and a model that calls the first one twice at once, or not at all.
fn runtime(has_round: bool, tools: usize) -> Runtime {
    let parameters = json!({ "type": "object", "required": ["a", "b"],
        "properties": { "a": { "type": "integer" }, "b": { "type": "string", "maxLength": 100 } } });
    let mut info = ProviderInfo::new("in-process", "m");
    info.dialect = Dialect::OpenAiStrict;
    let mut builder = Runtime::builder()
        .provider(Arc::new(InProcess { info, has_round }))
        .finder(Finder::new(".", Vec::new(), None));
    for number in 0..tools {
        let name = if number == 0 { "look".to_owned() } else { format!("look_{number}") };
        let tool = ToolInfo::new(name, "Looks.", &Value::from(parameters.clone())).unwrap();
        builder = builder.tool(Arc::new(tool.function(async |arguments: Value, _| Ok(arguments))));
    }
    builder.build().unwrap()
}

async fn run(runtime: &Runtime, module: &Arc<Module>) {
    let input = RunInput::Json(Value::parse(r#"{"query": "why?"}"#).unwrap());
    let envelope = runtime.run(module, input, RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
}

/// Returns the lowest processor time of this thread for one call, in microseconds.
fn best(mut call: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let (began, before) = (Instant::now(), spent());
        let mut calls = 0.0;
        while began.elapsed() < ROUND {
            call();
            calls += 1.0;
        }
        least = least.min((spent() - before) / 1_000.0 / calls);
    }
    least
}

/// Returns the processor time of this thread so far, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "the kernel reports it in a file")]
fn spent() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split(' ').next().unwrap().parse().unwrap()
}

/// Calls the tool in the first reply, if it has a round, and answers in the next one.
struct InProcess {
    info: ProviderInfo,
    has_round: bool,
}

impl Provider for InProcess {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        let is_first = request.messages.messages().len() == 2;
        let events = match self.has_round && is_first {
            true => {
                let calls = (0..2).map(call).map(ModelEvent::ToolCall);
                calls.chain([ModelEvent::Finished(FinishReason::ToolCalls)]).collect()
            }
            false => vec![ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)],
        };
        Box::pin(std::future::ready(Ok(reply(events))))
    }
}

fn call(index: u32) -> ToolCallDelta {
    ToolCallDelta {
        index,
        id: Some(format!("call_{index}")),
        name: Some("look".to_owned()),
        arguments: r#"{"a": 7, "b": "a text of some length"}"#.to_owned(),
        signature: None,
    }
}
