//! The time that a composition, and a run whose answers are compared, take beside their models.
//!
//! `cargo bench -p cog-run --bench compositions` prints each figure with its limit, and fails if one exceeds it. The best of several
//! runs counts.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use cog_json::Value;
use cog_module::Finder;
use cog_run::{
    ModuleRef, RunInput, RunOptions, Runtime,
    provider::{FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderInfo, reply},
};
use cog_testkit::bench::limit;

const STEPS: u32 = 10;
const BRANCHES: u32 = 100;
/// The elements of a list, and how many of them run at the same time.
const ELEMENTS: usize = 1_000;
const PARALLEL: usize = 50;
/// How often the model is waited for.
const TURNS: u32 = 20;
/// The time of a step beside the model.
const MAX_STEP: Duration = Duration::from_micros(150);
/// The memory that an element of a list adds to the peak, in KiB: its result, and nothing of its run.
const MAX_ELEMENT: f64 = 16.0;
/// The time of the model in a branch.
const MODEL: Duration = Duration::from_millis(50);
/// The time of the model in a run of several whose answers are compared.
const SLOW_MODEL: Duration = Duration::from_millis(300);

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"query": {"type": "string"},
        "pages": {"type": "array", "items": {"type": "string"}}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;
const ANSWER: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},
    "data":{"result":"fine","rationale":"because"},"error":null}"#;

fn main() -> ExitCode {
    match measured() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measured() -> Result<bool, Box<dyn std::error::Error>> {
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let directory = tempfile::tempdir()?;
    write(directory.path(), "sequence", &sequence())?;
    write(directory.path(), "branches", &branches())?;
    write(directory.path(), "list", &list())?;
    write(directory.path(), "agreement", "confidence: {evidence: [agreement=5], fields: [result]}\n")?;
    for number in 0..BRANCHES {
        write(directory.path(), &part(number), "")?;
    }
    // First, while the peak is that of lists: of one that runs at once, and then of twenty times as many elements.
    let few = peak(&events, directory.path(), PARALLEL)?;
    let many = peak(&events, directory.path(), ELEMENTS)?;
    let step = events.block_on(best(directory.path(), "sequence", Duration::ZERO, 50))? / STEPS;
    let all = events.block_on(best(directory.path(), "branches", MODEL, 5))?;
    let elements = events.block_on(best(directory.path(), "list", MODEL, 3))?;
    let ideal = MODEL * TURNS;
    let compared = events.block_on(best(directory.path(), "agreement", SLOW_MODEL, 3))?;
    Ok([
        limit(1.0, "a step of ten ÷ 150 µs", step.as_secs_f64() / MAX_STEP.as_secs_f64()),
        limit(2.0, "100 branches ÷ one model call of 50 ms", all.as_secs_f64() / MODEL.as_secs_f64()),
        limit(
            1.2,
            "five runs that are compared ÷ one model call of 300 ms",
            compared.as_secs_f64() / SLOW_MODEL.as_secs_f64(),
        ),
        limit(
            1.15,
            "a list of 1,000, 50 at once ÷ model calls of 50 ms",
            elements.as_secs_f64() / ideal.as_secs_f64(),
        ),
        limit(
            MAX_ELEMENT,
            "KiB that each further element of a list adds to the peak",
            (many - few) / FURTHER,
        ),
    ]
    .iter()
    .all(|within| *within))
}

/// The elements that the longer list has more.
const FURTHER: f64 = 950.0;

/// Returns the peak of the resident memory after a list of so many elements, in KiB.
#[expect(clippy::disallowed_methods, reason = "the kernel reports it in a file")]
fn peak(
    events: &tokio::runtime::Runtime,
    directory: &Path,
    elements: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    events.block_on(fastest(directory, "list", Duration::ZERO, 3, elements))?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Returns the time of the fastest run of a module.
async fn best(
    directory: &Path,
    name: &str,
    delay: Duration,
    runs: u32,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let elements = if name == "list" { ELEMENTS } else { 0 };
    fastest(directory, name, delay, runs, elements).await
}

/// Returns the time of the fastest run of a module, with a list of so many elements.
async fn fastest(
    directory: &Path,
    name: &str,
    delay: Duration,
    runs: u32,
    elements: usize,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let finder = Finder::new(".", vec![directory.to_owned()], None);
    let provider = Arc::new(Model { info: ProviderInfo::new("bench", "one"), delay });
    let runtime = Runtime::builder().provider(provider).finder(finder).build()?;
    let module = runtime.load(ModuleRef::Name(name))?;
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let pages = vec!["A page."; elements];
        let input = RunInput::Json(Value::from(serde_json::json!({"query": "why?", "pages": pages})));
        let started = Instant::now();
        let envelope = runtime.run(&module, input, RunOptions::default()).await;
        best = best.min(started.elapsed());
        if let Some(error) = envelope.error() {
            return Err(error.message.clone().into());
        }
    }
    Ok(best)
}

fn part(number: u32) -> String {
    format!("part-{number}")
}

fn sequence() -> String {
    let requires: Vec<String> = (0..STEPS).map(|number| format!("{{name: {}}}", part(number))).collect();
    let mut text = format!("composition:\n  requires: [{}]\n  dataflow:\n", requires.join(", "));
    text += "    - {from: input, to: part-0}\n";
    for number in 1..STEPS {
        let (from, to) = (part(number - 1), part(number));
        text += &format!("    - {{from: {from}.output, to: {to}, mapping: {{query: $.data.result}}}}\n");
    }
    text + &format!("    - {{from: {}.output, to: output}}\n", part(STEPS - 1))
}

fn list() -> String {
    format!(
        "composition:\n  dataflow:\n    - {{from: input, to: part-0, each: $.pages, max_parallel: {PARALLEL}, mapping: {{query: item}}}}\n    \
         - {{from: part-0.output, to: output, mapping: {{result: '$.data[0].result', rationale: '$.data[0].rationale'}}}}\n"
    )
}

fn branches() -> String {
    let names: Vec<String> = (0..BRANCHES).map(part).collect();
    let requires: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
    format!(
        "composition:\n  requires: [{}]\n  dataflow:\n    - {{from: input, to: [{}]}}\n    - {{from: part-0.output, to: output}}\n",
        requires.join(", "),
        names.join(", ")
    )
}

#[expect(clippy::disallowed_methods, reason = "the bench writes its own modules")]
fn write(directory: &Path, name: &str, manifest: &str) -> std::io::Result<()> {
    let directory = directory.join(name);
    std::fs::create_dir_all(&directory)?;
    let head =
        format!("name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: exploration\nexcludes: [x]\n");
    std::fs::write(directory.join("module.yaml"), head + manifest)?;
    std::fs::write(
        directory.join("prompt.md"),
        if manifest.starts_with("composition") { "" } else { "Answer." },
    )?;
    std::fs::write(directory.join("schema.json"), SCHEMA)
}

/// A model that replies after a time.
struct Model {
    info: ProviderInfo,
    delay: Duration,
}

impl Provider for Model {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            Ok(reply([ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)]))
        })
    }
}
