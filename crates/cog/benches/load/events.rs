//! Answers of 2 KB that the vendor streams as 134 events of 16 characters, beside a mere forwarder of the same.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;

use crate::{
    client::{Load, Measured, Pace, count, hammer},
    forward::Forwarder,
    http::{Connection, find},
    mock::{EVENTS, data_of_events},
    process::Process,
    report::Report,
    world::{Side, World, raw_request, sse_request},
};

const LENGTH: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(1);
/// How the mock sends the events: each in an HTTP chunk of its own, or all in one body.
const FORMS: [&str; 2] = ["events", "body"];
/// How many sync runs wait at once.
const WAITING: u32 = 2_000;

/// What an answer cost a process.
struct Cost {
    measured: Measured,
    /// Processor time of each request, in microseconds.
    processor: f64,
}

/// Envelopes: the rate, the processor time beside the forwarder's, and what a crowd does to both.
pub(crate) async fn sync(world: &World, report: &mut Report) {
    let forwarder = Forwarder::start(world.mock.address);
    for form in FORMS {
        let raw =
            Load { address: World::raw().address, request: Arc::from(raw_request(form)), is_right: is_reply };
        hammer(&raw, 32, Pace::AtOnce, WARM_UP).await;
        let raw = hammer(&raw, 32, Pace::AtOnce, LENGTH).await.per_second();
        report.note(&format!("{form}: {EVENTS} events from the raw mock"), raw, "a second");
        let (address, request) = world.request(Side::Ours, form, false);
        let ours = Load { address, request: Arc::from(request), is_right: is_envelope };
        let few = compare(world, &forwarder, form, &ours, 32, 1.2, report).await;
        report.at_least(&format!("{form}: rate, beside the raw mock's"), few / raw, "times", 0.35);
        let many = compare(world, &forwarder, form, &ours, 256, 1.2, report).await;
        report.at_least(&format!("{form}: rate with 256 clients, beside 32"), many / few, "times", 0.9);
    }
}

/// The same as server-sent events.
pub(crate) async fn sse(world: &World, report: &mut Report) {
    let forwarder = Forwarder::start(world.mock.address);
    for form in FORMS {
        let (address, request) = (world.server.address, Arc::from(sse_request(form)));
        let ours = Load { address, request, is_right: is_stream };
        compare(world, &forwarder, form, &ours, 32, 1.5, report).await;
    }
}

/// Sync runs that wait for their vendor.
pub(crate) async fn waiting(world: &World, report: &mut Report) {
    let (address, request) = world.request(Side::Ours, "body", false);
    let load = Load { address, request: Arc::from(request), is_right: is_envelope };
    hammer(&load, 32, Pace::AtOnce, WARM_UP).await;
    let before = world.server.resident();
    let (_, request) = world.request(Side::Ours, "idle", false);
    let calls = world.mock.calls();
    let mut held = Vec::new();
    for _ in 0..WAITING / 100 {
        held.extend(join_all((0..100).map(|_| send(address, &request))).await);
    }
    while world.mock.calls() - calls < u64::from(WAITING) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = (world.server.resident() - before) / f64::from(WAITING);
    report.at_most("memory of a waiting sync run (1 event so far)", each, "KiB", 48.0);
}

async fn send(address: std::net::SocketAddr, request: &[u8]) -> Connection {
    let mut connection = Connection::open(address).await.unwrap();
    connection.send(request).await.unwrap();
    connection
}

/// Puts the server and the forwarder under the same load. The server's rate.
async fn compare(
    world: &World,
    forwarder: &Forwarder,
    form: &str,
    ours: &Load,
    clients: u32,
    bound: f64,
    report: &mut Report,
) -> f64 {
    let request = Arc::from(raw_request(form));
    let theirs = Load { address: forwarder.process.address, request, is_right: is_reply };
    let mut theirs = cost(&forwarder.process, &theirs, clients).await;
    let calls = world.mock.calls();
    let mut ours = cost(&world.server, ours, clients).await;
    assert!(
        world.mock.calls() - calls >= ours.measured.latencies.len() as u64,
        "each request asks the model"
    );
    let name = |what: &str| format!("{form}, {clients} clients: {what}");
    report.note(&name("the forwarder"), theirs.measured.per_second(), "a second");
    report.note(&name("the forwarder, p99"), theirs.measured.percentile(0.99), "ms");
    report.note(&name("the forwarder, processor"), theirs.processor, "µs");
    report.note(&name("cog serve"), ours.measured.per_second(), "a second");
    report.note(&name("cog serve, processor"), ours.processor, "µs");
    report.at_most(
        &name("processor, beside the forwarder"),
        ours.processor / theirs.processor,
        "times",
        bound,
    );
    report.at_most(&name("p99"), ours.measured.percentile(0.99), "ms", 80.0);
    ours.measured.per_second()
}

async fn cost(process: &Process, load: &Load, clients: u32) -> Cost {
    hammer(load, clients, Pace::AtOnce, WARM_UP).await;
    let before = process.ticks();
    let measured = hammer(load, clients, Pace::AtOnce, LENGTH).await;
    let processor = (process.ticks() - before) * 10_000.0 / count(measured.latencies.len());
    Cost { measured, processor }
}

fn is_reply(body: &[u8]) -> bool {
    body.ends_with(b"data: [DONE]\n\n")
}

/// The envelope of the answer: the data to the byte, the tokens.
fn is_envelope(body: &[u8]) -> bool {
    body.starts_with(br#"{"ok":true,"meta":{"confidence":0.93,"#) && has_data(body)
}

/// A stream whose last event is the final chunk, with all of the data.
fn is_stream(body: &[u8]) -> bool {
    const FINAL: &[u8] = b"event: final\n";
    find(body, FINAL).and_then(|at| body.get(at..)).is_some_and(has_data)
}

fn has_data(text: &[u8]) -> bool {
    thread_local!(static DATA: String = format!(r#""data":{}"#, data_of_events()));
    DATA.with(|data| find(text, data.as_bytes())).is_some() && find(text, br#""total_tokens":50"#).is_some()
}
