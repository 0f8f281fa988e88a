//! Measures the time that servers over stdio cost beside their own.
//!
//! `cargo bench -p cog-mcp` prints each figure with its limit, and fails if one exceeds it. The servers are this program, started with
//! an argument.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and stops when it cannot run"
)]

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _, stdin, stdout},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use cog_mcp::{McpServer, McpTools, McpTransport};
use cog_run::tools::{ToolLimits, ToolSource as _, call_once};
use cog_testkit::bench::limit;
use serde_json::{Value, json};

/// The argument with which this program is a server. The next one is its delay at the start, in milliseconds.
const SERVER: &str = "mcp-server";
const CALLS: u32 = 2_000;
const ROUNDS: u32 = 3;
/// The own time of a call.
const MAX_CALL: Duration = Duration::from_micros(200);
/// The delays of the slow servers, in milliseconds.
const SLOW: [u64; 10] = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000];
const ARGUMENTS: &str = r#"{"path": "notes/today.md", "lines": 40}"#;

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    if args.next().as_deref() == Some(SERVER) {
        serve(args.next().and_then(|delay| delay.parse().ok()).unwrap_or(0));
        return ExitCode::SUCCESS;
    }
    let (call, raw) = (best(calls), best(raw_calls));
    println!("        a call {call:?}, the same bytes through the pipes {raw:?}");
    let own = call.saturating_sub(raw);
    let slowest = Duration::from_millis(SLOW.into_iter().max().unwrap_or_default());
    let within = [
        limit(1.0, "own time of a call over stdio ÷ 200 µs", own.as_secs_f64() / MAX_CALL.as_secs_f64()),
        limit(
            1.2,
            "starting ten slow servers ÷ the slowest",
            best(starts).as_secs_f64() / slowest.as_secs_f64(),
        ),
    ];
    if within.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn best(run: fn() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| run()).min().unwrap_or_default()
}

fn server(name: &str, delay: u64) -> McpServer {
    let transport = McpTransport::Stdio {
        command: env::current_exe().unwrap(),
        args: vec![SERVER.to_owned(), delay.to_string()],
        env: Vec::new(),
        directory: PathBuf::from("/"),
    };
    let mut server = McpServer::new(name, transport);
    server.initialize = true;
    server
}

fn started(name: &str, delay: u64) -> McpTools {
    let (tools, started) = server(name, delay).start_blocking().unwrap();
    started.unwrap();
    tools
}

/// Returns the time of a call, from its arguments to the result for the model.
fn calls() -> Duration {
    let tools = started("fast", 0);
    let tool = tools.tools().unwrap().remove(0);
    let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = ToolLimits::default();
    let began = Instant::now();
    events.block_on(async {
        for _ in 0..CALLS {
            assert!(call_once(tool.as_ref(), ARGUMENTS, &limits).await.1);
        }
    });
    began.elapsed() / CALLS
}

/// Returns the time of the same request and reply for a program that only writes and reads lines.
fn raw_calls() -> Duration {
    let mut command = Command::new(env::current_exe().unwrap());
    let command = command.args([SERVER, "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap();
    let params = json!({ "_meta": { "progressToken": 1 }, "name": "read", "arguments": arguments });
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string() + "\n";
    let mut line = String::new();
    let began = Instant::now();
    for _ in 0..CALLS {
        input.write_all(request.as_bytes()).unwrap();
        input.flush().unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
    }
    let time = began.elapsed() / CALLS;
    drop(input);
    child.wait().unwrap();
    time
}

/// Returns the time until ten servers have listed their tools, started as the program starts those of its settings.
fn starts() -> Duration {
    let began = Instant::now();
    let all = scope(|scope| {
        let starts = SLOW.map(|delay| scope.spawn(move || started("slow", delay)));
        starts.map(|start| start.join().unwrap())
    });
    let time = began.elapsed();
    drop(all);
    time
}

// The server.

fn serve(delay: u64) {
    sleep(Duration::from_millis(delay));
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else { continue };
        let result = match message.get("method").and_then(Value::as_str) {
            Some("initialize") => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "bench", "version": "1" } }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "read", "annotations": { "readOnlyHint": true },
                "inputSchema": { "type": "object", "properties": { "path": { "type": "string" }, "lines": { "type": "integer" } } } }] })
            }
            _ => json!({ "content": [{ "type": "text", "text": "a line of text\n".repeat(20) }] }),
        };
        let reply = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        writeln!(out, "{reply}").unwrap();
        out.flush().unwrap();
    }
}
