//! Streams whose chunks come one by one.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use futures_util::future::join_all;

use crate::{
    client::count,
    http::{Connection, find},
    mock::STAMP,
    report::{Report, percentile},
    world::{Side, World},
};

const STREAMS: usize = 500;
const DELTAS: usize = 250;
/// 250 deltas in 5 seconds: 50 a second.
const SCRIPT: &str = "paced-250-20";

/// The way of a delta alone: from the vendor to the client, with nothing else going on.
pub(crate) async fn first_chunk(world: &World, report: &mut Report) {
    let mut raw = first_stamps(world, Side::Raw).await;
    let mut ours = first_stamps(world, Side::Ours).await;
    let added = percentile(&mut ours, 0.5) - percentile(&mut raw, 0.5);
    report.at_most("first chunk after the vendor's first byte, added p50", added, "ms", 1.0);
    let added = percentile(&mut ours, 0.99) - percentile(&mut raw, 0.99);
    report.note("the same, p99", added, "ms");
}

async fn first_stamps(world: &World, side: Side) -> Vec<f64> {
    let (address, request) = world.request(side, "paced-1-1", true);
    let mut latencies = Vec::new();
    for _ in 0..200 {
        latencies.extend(stream(world, address, &request).await.latencies);
    }
    latencies
}

/// 500 streams of 50 deltas a second: what is added to each delta, to each stream, and how much memory a stream takes.
pub(crate) async fn streams(world: &World, report: &mut Report) {
    let before = world.server.resident();
    let mut raw = crowd(world, Side::Raw).await;
    let calls = world.mock.calls();
    let watched = async {
        tokio::time::sleep(std::time::Duration::from_millis(4_500)).await;
        world.server.resident()
    };
    let (mut ours, during) = tokio::join!(crowd(world, Side::Ours), watched);
    assert_eq!(world.mock.calls() - calls, STREAMS as u64, "each stream asks the model once");
    report.note("p50 of a stream of the raw mock", percentile(&mut raw.totals, 0.5), "ms");
    let times = percentile(&mut ours.totals, 0.5) / percentile(&mut raw.totals, 0.5);
    report.at_most("p50 of a stream, beside the raw mock's", times, "times", 1.1);
    let added = percentile(&mut ours.latencies, 0.5) - percentile(&mut raw.latencies, 0.5);
    report.note("p50 added to a chunk", added, "ms");
    let added = percentile(&mut ours.latencies, 0.99) - percentile(&mut raw.latencies, 0.99);
    report.at_most("p99 added to a chunk", added, "ms", 2.0);
    report.at_most("memory of a stream", (during - before) / count(STREAMS), "KiB", 64.0);
}

/// What the streams of a side took, in milliseconds.
#[derive(Default)]
struct Taken {
    /// From each delta's stamp to its arrival.
    latencies: Vec<f64>,
    /// Each whole stream.
    totals: Vec<f64>,
}

async fn crowd(world: &World, side: Side) -> Taken {
    let (address, request) = world.request(side, SCRIPT, true);
    let request: Arc<[u8]> = Arc::from(request);
    let all = join_all((0..STREAMS).map(|_| stream(world, address, &request))).await;
    let mut taken = Taken::default();
    for one in all {
        assert_eq!(one.latencies.len(), DELTAS, "each delta arrives once");
        taken.latencies.extend(one.latencies);
        taken.totals.extend(one.totals);
    }
    taken
}

/// Reads one stream to its end, and looks at the stamps in it as they arrive.
async fn stream(world: &World, address: SocketAddr, request: &[u8]) -> Taken {
    let started = Instant::now();
    let mut connection = Connection::open(address).await.unwrap();
    assert_eq!(connection.begin(request).await.unwrap(), 200);
    let (mut body, mut taken, mut looked) = (Vec::new(), Taken::default(), 0);
    while connection.more(&mut body).await.unwrap() {
        while let Some((stamp, end)) = stamp_after(&body, looked) {
            taken.latencies.push((world.mock.now() as f64 - stamp) / 1000.0);
            looked = end;
        }
    }
    taken.totals.push(started.elapsed().as_secs_f64() * 1000.0);
    taken
}

/// The next time that a delta carries, behind this place in the body, and where it ends. A delta is told by what is
/// before its digits: `"delta":"` of a chunk, `"content":"` of the mock; the final chunk repeats the digits without.
fn stamp_after(body: &[u8], from: usize) -> Option<(f64, usize)> {
    let rest = body.get(from..)?;
    let (at, key) = [br#""delta":""#.as_slice(), br#""content":""#.as_slice()]
        .into_iter()
        .filter_map(|key| Some((find(rest, key)?, key.len())))
        .min()?;
    let digits = rest.get(at + key..at + key + STAMP + 1)?;
    let end = from + at + key;
    match digits.split_last() {
        Some((b'|', digits)) => Some((std::str::from_utf8(digits).ok()?.parse().ok()?, end + STAMP)),
        _ => stamp_after(body, end),
    }
}
