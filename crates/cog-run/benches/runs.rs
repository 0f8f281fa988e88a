//! Measures the overhead of a run over parsing and checking its answer.
//!
//! `cargo bench -p cog-run --bench runs` prints processor time for each run, and its ratio to parsing and
//! checking the same answer once. It fails when a run against an in-process provider takes more than [`MAX`]
//! times as long. The runs over HTTP, which add the client, are printed too.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and stops when it cannot run"
)]

#[path = "support/answer.rs"]
mod answer;
#[path = "support/in_process.rs"]
mod in_process;
#[path = "support/server.rs"]
mod server;

use std::{
    hint::black_box,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use cog_json::{Limits, Parser, Value};
use cog_module::Module;
use cog_provider::{
    HttpProvider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{RunInput, RunOptions, Runtime};
use futures_util::StreamExt as _;

use self::in_process::InProcess;

/// The duration of each measurement in a round; the best of [`ROUNDS`] counts.
const ROUND: Duration = Duration::from_millis(300);
const ROUNDS: u32 = 5;
/// The maximum ratio of a run to parsing and checking. A run also checks the input, writes the request,
/// streams the answer field by field and folds it.
const MAX: f64 = 10.0;

fn main() -> ExitCode {
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let module = Runtime::offline().load("task-prioritizer").unwrap();
    let answer = answer::answer(&module, 2_000);
    let input = RunInput::Json(module.contract.sample_input(1).unwrap());
    let reference = best(|| read_and_check(&module, &answer));
    let runtime = Runtime::builder().provider(Arc::new(InProcess::new(answer.clone()))).build().unwrap();
    let runs = best(|| events.block_on(run(&runtime, &module, &input)));
    let streams = best(|| events.block_on(stream(&runtime, &module, &input)));
    let over_http = Runtime::builder().provider(Arc::new(asking(server::serve(&answer)))).build().unwrap();
    let http = best(|| events.block_on(run(&over_http, &module, &input)));

    println!("parsing and checking {:5.1} µs ({} bytes)", reference, answer.len());
    let tell = |name: &str, time: f64| println!("{name:20} {time:5.1} µs, {:4.1} times", time / reference);
    tell("a run", runs);
    tell("a stream", streams);
    tell("a run over HTTP", http);
    if runs / reference <= MAX { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn spent() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split(' ').next().unwrap().parse().unwrap()
}

fn read_and_check(module: &Module, answer: &str) {
    let mut parser = Parser::tolerant(Limits::model_output());
    parser.push(answer.as_bytes(), &mut |_| {}).unwrap();
    parser.finish(&mut |_| {}).unwrap();
    let value: Value = parser.into_value().unwrap();
    assert!(module.contract.check_meta(value.get("meta").unwrap()).is_empty());
    assert!(module.contract.check_data(value.get("data").unwrap()).violations.is_empty());
    black_box(value);
}

async fn run(runtime: &Runtime, module: &Arc<Module>, input: &RunInput) {
    let envelope = runtime.run(module, input.clone(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
}

async fn stream(runtime: &Runtime, module: &Arc<Module>, input: &RunInput) {
    let chunks = runtime.stream(module, input.clone(), RunOptions::default()).unwrap();
    assert!(chunks.count().await > 2);
}

fn asking(address: String) -> HttpProvider {
    let vendor = Vendor::by_name("openai").unwrap();
    let settings = ProviderSettings::from_variables(vendor, |name| match name {
        "OPENAI_API_KEY" => Some("none".to_owned()),
        "OPENAI_BASE_URL" => Some(address.clone()),
        _ => None,
    });
    HttpProvider::new(vendor, settings).unwrap()
}
