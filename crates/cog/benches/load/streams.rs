//! Streams that flood, and streams that wait.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;

use crate::{
    client::count,
    forward::Forwarder,
    http::{Connection, find},
    report::Report,
    world::{Side, World, raw_request},
};

/// 65,536 deltas of sixteen bytes.
const FLOOD: &str = "flood-65536";
const ROUNDS: usize = 5;
const IDLE: usize = 5_000;

/// Processor time for a reply of 1 MB in deltas of sixteen bytes, beside a program that only passes bytes on.
pub(crate) async fn flood(world: &World, report: &mut Report) {
    let forwarder = Forwarder::start(world.mock.address);
    let (_, ours) = world.request(Side::Ours, FLOOD, true);
    let (mut theirs_used, mut ours_used) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        let before = forwarder.process.ticks();
        let body = read(forwarder.process.address, &raw_request(FLOOD)).await;
        assert!(body.ends_with(b"data: [DONE]\n\n"), "the forwarder passes everything on");
        theirs_used += forwarder.process.ticks() - before;
        let before = world.server.ticks();
        let body = read(world.server.address, &ours).await;
        ours_used += world.server.ticks() - before;
        assert!(is_whole(&body), "the stream ends with all of the text");
    }
    report.note("a forwarder of axum and reqwest", theirs_used / count(ROUNDS) * 10.0, "ms");
    report.note("cog serve", ours_used / count(ROUNDS) * 10.0, "ms");
    report.at_most("processor time beside the forwarder's", ours_used / theirs_used, "times", 5.0);
}

/// Every stream that has begun stays open, and costs little.
pub(crate) async fn idle(world: &World, report: &mut Report) {
    let before = world.server.resident();
    let (address, request) = world.request(Side::Ours, "idle", true);
    let request: Arc<[u8]> = Arc::from(request);
    let mut held = Vec::new();
    for batch in 0..IDLE / 100 {
        let opened = join_all((0..100).map(|_| begin(address, Arc::clone(&request)))).await;
        assert_eq!(opened.len(), 100, "batch {batch}");
        held.extend(opened);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let during = world.server.resident();
    let open = join_all(held.iter_mut().map(is_open)).await.into_iter().filter(|is_open| *is_open).count();
    report.at_least("streams held", count(open), "", count(IDLE));
    report.note("memory of a stream", (during - before) / count(IDLE), "KiB");
}

async fn begin(address: std::net::SocketAddr, request: Arc<[u8]>) -> Connection {
    let mut connection = Connection::open(address).await.unwrap();
    assert_eq!(connection.begin(&request).await.unwrap(), 200);
    let mut body = Vec::new();
    while find(&body, br#""data.rationale""#).is_none() {
        assert!(connection.more(&mut body).await.unwrap(), "{}", String::from_utf8_lossy(&body));
    }
    connection
}

/// Whether nothing ends the stream in a moment.
async fn is_open(connection: &mut Connection) -> bool {
    let mut body = Vec::new();
    tokio::time::timeout(Duration::from_millis(100), connection.more(&mut body)).await.is_err()
}

async fn read(address: std::net::SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut connection = Connection::open(address).await.unwrap();
    let mut body = Vec::new();
    assert_eq!(connection.ask(request, &mut body).await.unwrap(), 200);
    body
}

/// The last line is the final chunk, with a megabyte of text in it.
fn is_whole(body: &[u8]) -> bool {
    let last =
        body.strip_suffix(b"\n").unwrap_or_default().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    last.starts_with(br#"{"final":true"#) && last.len() > 65_536 * 16
}
