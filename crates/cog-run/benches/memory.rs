//! Measures the memory growth over five thousand runs in one process.
//!
//! `cargo bench -p cog-run` prints how much the memory grew between the first 100 runs and the 5,000th, and
//! fails above 5 MB. The runs use the complete pipeline over HTTP, with a server in a thread that stores
//! nothing.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and stops when it cannot run"
)]

#[path = "support/answer.rs"]
mod answer;
#[path = "support/server.rs"]
mod server;

use std::{process::ExitCode, sync::Arc};

use cog_provider::{
    HttpProvider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{RunInput, RunOptions, Runtime};

const RUNS: usize = 5_000;
const WARM_UP: usize = 100;
const MAX: u64 = 5 * 1024 * 1024;

fn main() -> ExitCode {
    let grown = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(runs());
    let verdict = if grown <= MAX { "kept" } else { "BROKEN" };
    println!(
        "{verdict:7} {RUNS} runs leave {} KiB more than the first {WARM_UP} (at most {} KiB)",
        grown / 1024,
        MAX / 1024
    );
    if grown <= MAX { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the growth of the resident memory after the warm-up, in bytes.
async fn runs() -> u64 {
    let vendor = Vendor::by_name("openai").unwrap();
    let module = Runtime::offline().load("task-prioritizer").unwrap();
    let address = server::serve(&answer::answer(&module, 9_000));
    let settings = ProviderSettings::from_variables(vendor, |name| match name {
        "OPENAI_API_KEY" => Some("none".to_owned()),
        "OPENAI_BASE_URL" => Some(address.clone()),
        _ => None,
    });
    let runtime =
        Runtime::builder().provider(Arc::new(HttpProvider::new(vendor, settings).unwrap())).build().unwrap();
    let mut after_warm_up = 0;
    for run in 0..RUNS {
        if run == WARM_UP {
            after_warm_up = resident();
        }
        let module = runtime.load("task-prioritizer").unwrap();
        let input = RunInput::Json(module.contract.sample_input(1).unwrap());
        let envelope = runtime.run(&module, input, RunOptions::default()).await;
        assert!(envelope.usage().is_some(), "the server was asked: {:?}", envelope.error());
    }
    resident().saturating_sub(after_warm_up)
}

/// Returns the resident memory of this process, in bytes.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}
