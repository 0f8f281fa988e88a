//! Answers of 2 KB that the vendor streams as 134 events of 16 characters, beside a mere forwarder of the same.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;

use crate::{
    client::{Cost, Load, Pace, cost, hammer},
    forward::Forwarder,
    http::{Connection, find},
    mock::{EVENTS, data_of_events},
    report::Report,
    world::{Side, World, raw_request, sse_request},
};

const LENGTH: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(1);
/// How the mock sends the events: each in an HTTP chunk of its own, as vendors do, or all in one body of known length.
/// The bounds are those of the first: the second is a copy of 25 KB to the forwarder, which reads no events.
const FORMS: [&str; 2] = [CHUNKS, "body"];
const CHUNKS: &str = "events";
/// How many sync runs wait at once.
const WAITING: u32 = 2_000;

/// The server beside the forwarder.
struct Comparison<'a> {
    world: &'a World,
    forwarder: &'a Forwarder,
    form: &'static str,
    /// How many times the forwarder's processor time a request may take at most.
    bound: f64,
}

/// Envelopes: the rate, the processor time beside the forwarder's, and what a crowd does to both.
pub(crate) async fn sync(world: &World, report: &mut Report) {
    let forwarder = Forwarder::start(world.mock.address);
    for form in FORMS {
        let raw = raw_rate(form).await;
        report.note(&format!("{form}: {EVENTS} events from the raw mock"), raw, "a second");
        let (address, request) = world.request(Side::Ours, form, false);
        let ours = Load { address, request: Arc::from(request), is_right: is_envelope };
        let comparison = Comparison { world, forwarder: &forwarder, form, bound: 1.2 };
        let few = comparison.run(&ours, 32, report).await;
        let many = comparison.run(&ours, 256, report).await;
        let beside_raw = format!("{form}: rate, beside the raw mock's");
        match form {
            CHUNKS => report.at_least(&beside_raw, few / raw, "times", 0.35),
            _ => report.note(&beside_raw, few / raw, "times"),
        }
        report.at_least(&format!("{form}: rate with 256 clients, beside 32"), many / few, "times", 0.9);
    }
}

/// How often the mock answers when it has the measured core for itself.
async fn raw_rate(form: &str) -> f64 {
    let request = Arc::from(raw_request(form));
    let raw = Load { address: World::raw().address, request, is_right: is_reply };
    hammer(&raw, 32, Pace::AtOnce, WARM_UP).await;
    hammer(&raw, 32, Pace::AtOnce, LENGTH).await.per_second()
}

/// The same as server-sent events.
pub(crate) async fn sse(world: &World, report: &mut Report) {
    let forwarder = Forwarder::start(world.mock.address);
    for form in FORMS {
        let (address, request) = (world.server.address, Arc::from(sse_request(form)));
        let ours = Load { address, request, is_right: is_stream };
        Comparison { world, forwarder: &forwarder, form, bound: 1.5 }.run(&ours, 32, report).await;
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

impl Comparison<'_> {
    /// Puts the server and the forwarder under the same load. The server's rate.
    async fn run(&self, ours: &Load, clients: u32, report: &mut Report) -> f64 {
        let request = Arc::from(raw_request(self.form));
        let theirs = Load { address: self.forwarder.process.address, request, is_right: is_reply };
        let theirs = cost(&self.forwarder.process, &theirs, clients).await;
        let calls = self.world.mock.calls();
        let ours = cost(&self.world.server, ours, clients).await;
        let called = self.world.mock.calls() - calls;
        assert!(called >= ours.measured.latencies.len() as u64, "each request calls the model");
        let rate = ours.measured.per_second();
        self.print(clients, theirs, ours, report);
        rate
    }

    fn print(&self, clients: u32, mut theirs: Cost, mut ours: Cost, report: &mut Report) {
        let name = |what: &str| format!("{}, {clients} clients: {what}", self.form);
        report.note(&name("the forwarder"), theirs.measured.per_second(), "a second");
        report.note(&name("the forwarder, p99"), theirs.measured.percentile(0.99), "ms");
        report.note(&name("the forwarder, processor"), theirs.processor, "µs");
        report.note(&name("cog serve"), ours.measured.per_second(), "a second");
        report.note(&name("cog serve, processor"), ours.processor, "µs");
        let beside = ours.processor / theirs.processor;
        match self.form {
            CHUNKS => report.at_most(&name("processor, beside the forwarder"), beside, "times", self.bound),
            _ => report.note(&name("processor, beside the forwarder"), beside, "times"),
        }
        report.at_most(&name("p99"), ours.measured.percentile(0.99), "ms", 80.0);
    }
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
