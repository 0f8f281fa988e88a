//! Streams whose chunks come one by one.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;

use crate::{
    cores::Awake,
    http::{Connection, find},
    mock::STAMP,
    report::{Report, percentile},
    world::{Side, World},
};

const STREAMS: u32 = 500;
const ONE: Script = Script { deltas: 1, pause: Duration::from_millis(1) };
/// Ten deltas a second, for five seconds.
const SLOW: Script = Script { deltas: 50, pause: Duration::from_millis(100) };
/// Fifty deltas a second, for six seconds.
const QUICK: Script = Script { deltas: 300, pause: Duration::from_millis(20) };
/// In what time the quick streams are opened.
const RAMP: Duration = Duration::from_secs(2);

/// What the mock is to send.
#[derive(Clone, Copy)]
struct Script {
    deltas: u32,
    pause: Duration,
}

impl Script {
    fn name(self) -> String {
        format!("paced-{}-{}", self.deltas, self.pause.as_millis())
    }
}

/// The way of a delta alone: from the vendor to the client, with nothing else going on.
pub(crate) async fn first_chunk(world: &World, report: &mut Report) {
    let _awake = Awake::keep();
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        raw.extend(latencies(&crowd(world, Side::Raw, ONE, 1, Duration::ZERO).await));
        ours.extend(latencies(&crowd(world, Side::Ours, ONE, 1, Duration::ZERO).await));
    }
    let added = percentile(&mut ours, 0.5) - percentile(&mut raw, 0.5);
    report.at_most("first chunk after the vendor's first byte, added p50", added, "ms", 1.0);
    let added = percentile(&mut ours, 0.99) - percentile(&mut raw, 0.99);
    report.note("the same, p99", added, "ms");
}

/// 500 concurrent streams with ten deltas per second: their duration and memory.
pub(crate) async fn slow(world: &World, report: &mut Report) {
    crowd(world, Side::Ours, ONE, 32, Duration::ZERO).await;
    let before = world.server.resident();
    let raw = crowd(world, Side::Raw, SLOW, STREAMS, Duration::ZERO).await;
    let calls = world.mock.calls();
    let watched = async {
        tokio::time::sleep(SLOW.pause * SLOW.deltas * 9 / 10).await;
        world.server.resident()
    };
    let (ours, during) = tokio::join!(crowd(world, Side::Ours, SLOW, STREAMS, Duration::ZERO), watched);
    assert_eq!(world.mock.calls() - calls, u64::from(STREAMS), "each stream asks the model once");
    report.note("p50 of a stream of the raw mock", middle(&raw), "ms");
    report.at_most("p50 of a stream, beside the raw mock's", middle(&ours) / middle(&raw), "times", 1.1);
    report.at_most("memory of a stream", (during - before) / f64::from(STREAMS), "KiB", 64.0);
}

/// 500 streams of 50 deltas a second: what is added to each delta, while all of them are open.
pub(crate) async fn quick(world: &World, report: &mut Report) {
    let mut raw = latencies(&crowd(world, Side::Raw, QUICK, STREAMS, RAMP).await);
    let mut ours = latencies(&crowd(world, Side::Ours, QUICK, STREAMS, RAMP).await);
    let added = percentile(&mut ours, 0.5) - percentile(&mut raw, 0.5);
    report.note("p50 added to a chunk", added, "ms");
    let added = percentile(&mut ours, 0.99) - percentile(&mut raw, 0.99);
    report.at_most("p99 added to a chunk", added, "ms", 2.0);
}

/// What a stream took.
struct Taken {
    /// When each delta left, in microseconds, and how many milliseconds it was on its way.
    deltas: Vec<(f64, f64)>,
    /// The whole, in milliseconds.
    total: f64,
}

/// Opens this many streams, spread evenly over `ramp`.
async fn crowd(world: &World, side: Side, script: Script, streams: u32, ramp: Duration) -> Vec<Taken> {
    let (address, request) = world.request(side, &script.name(), true);
    let request: Arc<[u8]> = Arc::from(request);
    let all = join_all((0..streams).map(|index| {
        let request = Arc::clone(&request);
        async move {
            tokio::time::sleep(ramp * index / streams).await;
            stream(world, address, &request).await
        }
    }));
    let all = all.await;
    assert!(all.iter().all(|one| one.deltas.len() == script.deltas as usize), "each delta arrives once");
    all
}

/// How long the deltas were on their way that left while every stream was open.
fn latencies(streams: &[Taken]) -> Vec<f64> {
    let firsts = streams.iter().filter_map(|one| one.deltas.first());
    let lasts = streams.iter().filter_map(|one| one.deltas.last());
    let from = firsts.map(|(left, _)| *left).fold(0.0, f64::max);
    let to = lasts.map(|(left, _)| *left).fold(f64::INFINITY, f64::min);
    let deltas = streams.iter().flat_map(|one| &one.deltas);
    deltas.filter(|(left, _)| (from..=to).contains(left)).map(|(_, took)| *took).collect()
}

fn middle(streams: &[Taken]) -> f64 {
    percentile(&mut streams.iter().map(|one| one.total).collect::<Vec<_>>(), 0.5)
}

/// Reads one stream to its end, and looks at the stamps in it as they arrive.
async fn stream(world: &World, address: SocketAddr, request: &[u8]) -> Taken {
    let started = Instant::now();
    let mut connection = Connection::open(address).await.unwrap();
    assert_eq!(connection.begin(request).await.unwrap(), 200);
    let (mut body, mut deltas, mut looked) = (Vec::new(), Vec::new(), 0);
    while connection.more(&mut body).await.unwrap() {
        while let Some((stamp, end)) = stamp_after(&body, looked) {
            deltas.push((stamp, (world.mock.now() as f64 - stamp) / 1000.0));
            looked = end;
        }
    }
    Taken { deltas, total: started.elapsed().as_secs_f64() * 1000.0 }
}

/// Returns the next time that a delta contains after this index of the body, and the index of its end. Digits belong to
/// a delta if they follow `"delta":"` in a chunk or `"content":"` of the mock; in the final chunk they follow neither.
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
