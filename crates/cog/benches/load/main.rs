//! What the server costs: `cargo xtask load`. What hostile clients cost the others: `cargo xtask siege`.
//!
//! Everything runs on loopback: a mock vendor and a load client in this process, `cog serve` beside it on a core of its
//! own. Each figure is compared with that of the raw mock, or of a forwarder that uses the same axum and reqwest, called
//! by the same client in the same run. Every request must complete, and every body is checked. The mock must receive as
//! many requests as the client sent. A bound that is missed fails the run.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark prints its table, reads files as they are, and stops when it cannot run"
)]

mod client;
mod cores;
mod events;
mod forward;
mod http;
mod mcp;
mod mock;
mod openai;
mod paced;
mod process;
mod report;
mod siege;
mod streams;
mod uploads;
mod whole;
mod world;

use std::{process::ExitCode, time::Duration};

use crate::{report::Report, siege::Extent, world::World};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, address] = arguments.as_slice()
        && kind == "forward"
    {
        return forward::serve(address);
    }
    let words: Vec<_> =
        arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let siege = |seconds: &str, extent| {
        let length = Duration::from_secs(seconds.parse().expect("a number of seconds"));
        runtime.block_on(siege::run(length, extent))
    };
    match words.as_slice() {
        ["siege", seconds] => siege(seconds, Extent::Everything),
        ["siege", seconds, "untimed"] => siege(seconds, Extent::Untimed),
        words => runtime.block_on(run(words.first().unwrap_or(&""))),
    }
}

/// Runs the scenarios whose name holds this word, each with a server of its own.
async fn run(wanted: &str) -> ExitCode {
    cores::allow_many_files();
    let mut report = Report::default();
    for (name, scenario) in scenarios() {
        if name.contains(wanted) {
            println!("{name}");
            scenario(&World::start(), &mut report).await;
        }
    }
    report.end()
}

type Scenario = for<'a> fn(&'a World, &'a mut Report) -> futures_util::future::LocalBoxFuture<'a, ()>;

fn scenarios() -> [(&'static str, Scenario); 17] {
    [
        ("whole answers, 32 clients", |world, report| Box::pin(whole::rate(world, report))),
        ("whole answers, one client", |world, report| Box::pin(whole::one(world, report))),
        ("whole answers, 1,000 a second", |world, report| Box::pin(whole::thousand_a_second(world, report))),
        ("whole answers, 256 clients", |world, report| Box::pin(whole::crowd(world, report))),
        ("memory after 5,000 requests", |world, report| Box::pin(whole::memory(world, report))),
        ("134 events, as one envelope", |world, report| Box::pin(events::sync(world, report))),
        ("134 events, as server-sent events", |world, report| Box::pin(events::sse(world, report))),
        ("OpenAI's routes, whole answers", |world, report| Box::pin(openai::complete(world, report))),
        ("OpenAI's routes, streams", |world, report| Box::pin(openai::streams(world, report))),
        ("waiting runs", |world, report| Box::pin(events::waiting(world, report))),
        ("a tool of MCP", |world, report| Box::pin(mcp::calls(world, report))),
        ("first chunk", |world, report| Box::pin(paced::first_chunk(world, report))),
        ("500 slow streams", |world, report| Box::pin(paced::slow(world, report))),
        ("500 streams of 50 chunks a second", |world, report| Box::pin(paced::quick(world, report))),
        ("a megabyte in deltas of sixteen bytes", |world, report| Box::pin(streams::flood(world, report))),
        ("an upload of 100 MB", |world, report| Box::pin(uploads::large(world, report))),
        ("5,000 idle streams", |world, report| Box::pin(streams::idle(world, report))),
    ]
}
