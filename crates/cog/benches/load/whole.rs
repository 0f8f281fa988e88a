//! Answers as one envelope.

use std::{sync::Arc, time::Duration};

use crate::{
    client::{Load, Measured, Pace, count, hammer},
    cores::Awake,
    http::find,
    mock::{DATA, Mock},
    report::Report,
    world::{Side, World, raw_request},
};

const LENGTH: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(1);

/// The rate with 32 clients, beside that of the mock on the same core.
pub(crate) async fn rate(world: &World, report: &mut Report) {
    let raw = raw(&World::raw(), 32, Pace::AtOnce).await.per_second();
    let ours = ours(world, 32, Pace::AtOnce, LENGTH).await.per_second();
    report.note("the raw mock", raw, "a second");
    report.note("cog serve", ours, "a second");
    report.at_least("one twelfth of the raw mock", ours / raw * 12.0, "twelfths", 1.0);
}

/// What the server adds to one client's answers.
pub(crate) async fn one(world: &World, report: &mut Report) {
    let _awake = Awake::keep();
    let mut raw = raw(&world.mock, 1, Pace::AtOnce).await;
    let mut ours = ours(world, 1, Pace::AtOnce, LENGTH).await;
    report.at_most("p50 added", ours.percentile(0.5) - raw.percentile(0.5), "ms", 0.25);
}

/// What the server adds at a steady rate.
pub(crate) async fn thousand_a_second(world: &World, report: &mut Report) {
    let _awake = Awake::keep();
    let pace = Pace::Every(Duration::from_millis(32));
    let mut raw = raw(&world.mock, 32, pace).await;
    let mut ours = ours(world, 32, pace, LENGTH).await;
    report.note("p50 added", ours.percentile(0.5) - raw.percentile(0.5), "ms");
    report.at_most("p99 added", ours.percentile(0.99) - raw.percentile(0.99), "ms", 1.0);
}

/// How long the last in a crowd waits.
pub(crate) async fn crowd(world: &World, report: &mut Report) {
    let mut ours = ours(world, 256, Pace::AtOnce, LENGTH).await;
    report.note("p50", ours.percentile(0.5), "ms");
    report.at_most("p99", ours.percentile(0.99), "ms", 60.0);
}

/// What 5,000 requests leave behind, once as many have come before that everything has its usual size.
pub(crate) async fn memory(world: &World, report: &mut Report) {
    ours(world, 32, Pace::AtOnce, LENGTH).await;
    let before = world.server.resident();
    let mut asked = 0;
    while asked < 5_000 {
        asked += ours(world, 32, Pace::AtOnce, Duration::from_millis(200)).await.latencies.len();
    }
    report.note("requests", count(asked), "");
    report.at_most("memory grown", (world.server.resident() - before) / 1024.0, "MiB", 5.0);
}

async fn raw(mock: &Mock, clients: u32, pace: Pace) -> Measured {
    let load = Load { address: mock.address, request: Arc::from(raw_request("whole")), is_right: is_reply };
    hammer(&load, clients, pace, WARM_UP).await;
    hammer(&load, clients, pace, LENGTH).await
}

/// Sends requests to the server, and compares their number with that of the mock.
async fn ours(world: &World, clients: u32, pace: Pace, length: Duration) -> Measured {
    let (address, request) = world.request(Side::Ours, "whole", false);
    let load = Load { address, request: Arc::from(request), is_right: is_envelope };
    hammer(&load, clients, pace, WARM_UP).await;
    let before = world.mock.calls();
    let measured = hammer(&load, clients, pace, length).await;
    assert_eq!(
        world.mock.calls() - before,
        measured.latencies.len() as u64,
        "each request asks the model once"
    );
    measured
}

fn is_reply(body: &[u8]) -> bool {
    body.ends_with(b"data: [DONE]\n\n")
}

/// The envelope of the mock's answer: the data to the byte, the tokens, no warning.
fn is_envelope(body: &[u8]) -> bool {
    let holds = |wanted: &str| find(body, wanted.as_bytes()).is_some();
    body.starts_with(br#"{"ok":true,"meta":{"confidence":0.93,"#)
        && holds(&format!(r#""data":{DATA}"#))
        && holds(r#""total_tokens":50"#)
        && !holds("_warnings")
}
