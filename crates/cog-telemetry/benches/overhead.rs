//! Measures what telemetry adds to a run.
//!
//! `cargo bench -p cog-telemetry --bench overhead` prints the processor time of a run without telemetry and with it, and their
//! ratio: the thread of the run together with the one that exports. A collector in this process accepts everything. It fails when
//! a run over HTTP takes more than [`MAX`] times as long with telemetry. The run against a provider in this process is printed too.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark prints its table, reads the kernel's files, and stops when it cannot run"
)]

#[path = "../../cog-run/benches/support/answer.rs"]
mod answer;
#[path = "../../cog-run/benches/support/in_process.rs"]
mod in_process;
#[path = "../../cog-run/benches/support/server.rs"]
mod server;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use cog_module::Module;
use cog_provider::{
    HttpProvider, Provider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{RunInput, RunOptions, Runtime};
use cog_telemetry::{Telemetry, TelemetrySettings};

use self::in_process::InProcess;

/// The duration of each measurement in a round; the median ratio of [`ROUNDS`] counts.
const ROUND: Duration = Duration::from_millis(400);
const ROUNDS: usize = 9;
/// The maximum ratio of a run with telemetry to one without.
const MAX: f64 = 1.05;

fn main() -> ExitCode {
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let module = Runtime::offline().load("task-prioritizer").unwrap();
    let answer = answer::answer(&module, 2_000);
    let input = RunInput::Json(module.contract.sample_input(1).unwrap());
    let (collector, received) = collector();
    let telemetry = Telemetry::new(settings(&collector), Arc::new(str::to_owned));
    let measure = |name: &str, provider: Arc<dyn Provider>| {
        let without = Runtime::builder().provider(Arc::clone(&provider)).build().unwrap();
        let with = Runtime::builder().provider(provider).events(telemetry.events()).build().unwrap();
        let one = |runtime: &Runtime| events.block_on(run(runtime, &module, &input));
        let (mut rounds, mut plain) = (Vec::new(), f64::MAX);
        for _ in 0..ROUNDS {
            let (off, on) = (time(|| one(&without)), time(|| one(&with)));
            rounds.push(on / off);
            plain = plain.min(off);
        }
        rounds.sort_by(f64::total_cmp);
        let ratio = *rounds.get(ROUNDS / 2).unwrap();
        println!("{name:22} {plain:6.1} µs without, {ratio:.3} times as long with telemetry");
        ratio
    };
    measure("a run", Arc::new(InProcess::new(answer.clone())));
    let over_http = measure("a run over HTTP", Arc::new(calling(server::serve(&answer))));
    let lost = telemetry.close(Duration::from_secs(30));
    assert!(lost.spans == 0 && received.load(Relaxed) > 0, "{lost:?}");
    println!("{} bytes were exported, nothing was lost", received.load(Relaxed));
    if over_http <= MAX { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything is recorded, and no span is dropped while the processor is busy with runs.
fn settings(collector: &str) -> TelemetrySettings {
    let found = TelemetrySettings::read(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(collector.to_owned()),
        "OTEL_BSP_MAX_QUEUE_SIZE" => Some("1000000".to_owned()),
        _ => None,
    });
    found.settings.unwrap()
}

async fn run(runtime: &Runtime, module: &Arc<Module>, input: &RunInput) {
    let envelope = runtime.run(module, input.clone(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
}

/// Returns the processor time of one call, in microseconds, including the thread that exports.
fn time(mut call: impl FnMut()) -> f64 {
    let (began, before) = (Instant::now(), spent());
    let mut calls = 0.0;
    while began.elapsed() < ROUND {
        call();
        calls += 1.0;
    }
    (spent() - before) / 1_000.0 / calls
}

/// Returns the processor time so far of this thread and the one that exports, in nanoseconds.
fn spent() -> f64 {
    let own = nanoseconds("/proc/thread-self");
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let exports = tasks.filter(|task| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "cog-telemetry")
    });
    own + exports.map(|task| nanoseconds(task.to_str().unwrap())).sum::<f64>()
}

fn nanoseconds(task: &str) -> f64 {
    let statistics = std::fs::read_to_string(format!("{task}/schedstat")).unwrap();
    statistics.split(' ').next().unwrap().parse().unwrap()
}

fn calling(address: String) -> HttpProvider {
    let vendor = Vendor::by_name("openai").unwrap();
    let settings = ProviderSettings::from_variables(vendor, |name| match name {
        "OPENAI_API_KEY" => Some("none".to_owned()),
        "OPENAI_BASE_URL" => Some(address.clone()),
        _ => None,
    });
    HttpProvider::new(vendor, settings).unwrap()
}

/// Starts a collector that accepts everything. Returns its URL, and the number of bytes that it received.
fn collector() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::<AtomicU64>::default();
    let count = Arc::clone(&received);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            thread::spawn(move || accept(&stream, &count));
        }
    });
    (url, received)
}

fn accept(mut stream: &TcpStream, count: &AtomicU64) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        if length == 0 {
            return;
        }
        let read = std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        count.fetch_add(read, Relaxed);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}
