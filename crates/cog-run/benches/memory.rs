//! What five thousand runs leave behind in one process.
//!
//! `cargo bench -p cog-run` prints how much more memory the process holds after 5,000 runs than after the first 100,
//! and fails where that is over 5 MB. The runs go through the whole pipeline, over HTTP, to a server in a thread that
//! keeps nothing.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and stops when it cannot run"
)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::ExitCode,
    sync::Arc,
    thread,
};

use cog_provider::{
    HttpProvider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{RunInput, RunOptions, Runtime};

const RUNS: usize = 5_000;
const WARM_UP: usize = 100;
const MOST: u64 = 5 * 1024 * 1024;

fn main() -> ExitCode {
    let grown = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(runs());
    let verdict = if grown <= MOST { "kept" } else { "BROKEN" };
    println!(
        "{verdict:7} {RUNS} runs leave {} KiB more than the first {WARM_UP} (at most {} KiB)",
        grown / 1024,
        MOST / 1024
    );
    if grown <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much the resident memory grew after the warm-up, in bytes.
async fn runs() -> u64 {
    let vendor = Vendor::named("openai").unwrap();
    let address = serve();
    let settings = ProviderSettings::of(vendor, |name| match name {
        "OPENAI_API_KEY" => Some("none".to_owned()),
        "OPENAI_BASE_URL" => Some(address.clone()),
        _ => None,
    });
    let runtime = Runtime::builder().provider(Arc::new(HttpProvider::new(vendor, settings).unwrap())).build();
    let mut after_warm_up = 0;
    for run in 0..RUNS {
        if run == WARM_UP {
            after_warm_up = resident();
        }
        let module = runtime.load("task-prioritizer").unwrap();
        let input = RunInput::Json(module.contract.sample_input(1).unwrap());
        let envelope = runtime.execute(&module, input, RunOptions::default()).await;
        assert!(envelope.usage().is_some(), "the server was asked: {:?}", envelope.error());
    }
    resident().saturating_sub(after_warm_up)
}

/// The resident memory of this process, in bytes.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// A server that gives every question the same streamed answer; its address.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(length) = content_length(&mut reader) {
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        let body = reply();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
    }
}

/// Reads the head of a request; none where the client is gone.
fn content_length(reader: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some(length);
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
}

/// An answer of some 10 KB, in pieces of 64 characters.
fn reply() -> String {
    let rationale = "Because the deadline is near. ".repeat(300);
    let text = serde_json::json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Done." },
        "data": { "rationale": rationale },
        "error": null,
    })
    .to_string();
    let piece = |text: &[char]| {
        let text: String = text.iter().collect();
        let chunk = serde_json::json!({ "id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
        format!("data: {chunk}\n\n")
    };
    let mut body: String = text.chars().collect::<Vec<_>>().chunks(64).map(piece).collect();
    body += "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    body += "data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30}}\n\n";
    body + "data: [DONE]\n\n"
}
