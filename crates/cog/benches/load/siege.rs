//! Hostile clients alongside healthy ones: `cargo xtask siege`.

mod budget;
mod hostile;
mod tenant;

use std::{process::ExitCode, sync::Arc, time::Duration};

use crate::{
    client::{Load, Measured, Pace, hammer},
    cores,
    http::find,
    report::Report,
    world::{Side, World},
};
use hostile::{Crowd, on_resources};

/// The healthy clients, and how often each sends a request: half as often as the model can answer. A client without that
/// slack could never make up for a delay, and each one would count for all its later requests.
const HEALTHY: u32 = 10;
const PACE: Pace = Pace::Every(Duration::from_millis(200));
/// The longest measurement of the healthy clients alone.
const MAX_ALONE: Duration = Duration::from_secs(60);
/// A model that answers within 100 ms, which few do.
const MODEL: &str = "paced-10-10";
/// The bounds: the peak of resident memory in MiB, and the healthy clients' latency beside that without the others.
const MEMORY: f64 = 600.0;
const LATENCY: f64 = 3.0;

/// Whether latencies are compared. On a machine that does other work at the same time they say nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Everything,
    Untimed,
}

/// Measures the healthy clients alone, a minute at most, and then for `length` beside the hostile ones. Every healthy
/// request must get its right answer. Then measures what hostile clients can take from another one, and what a client can
/// spend.
pub(crate) async fn run(length: Duration, extent: Extent) -> ExitCode {
    cores::allow_many_files();
    let world = World::with_limits(&[]);
    let mut report = Report::default();
    let (address, request) = world.request(Side::Ours, MODEL, false);
    let load = Load { address, request: Arc::from(request), is_right: is_envelope };
    hammer(&load, HEALTHY, PACE, Duration::from_secs(1)).await;
    let mut alone = hammer(&load, HEALTHY, PACE, length.min(MAX_ALONE)).await;
    report.note("peak of resident memory, healthy clients", world.server.peak() / 1024.0, "MiB");
    let crowd = Crowd::start(address, on_resources());
    let mut beside = hammer(&load, HEALTHY, PACE, length).await;
    for (attack, times) in crowd.stop() {
        report.at_least(attack, times, "connections", 1.0);
    }
    report.at_most("peak of resident memory", world.server.peak() / 1024.0, "MiB", MEMORY);
    compare(&mut alone, &mut beside, extent, &mut report);
    drop(world);
    tenant::keep(&mut report).await;
    budget::spend(&mut report).await;
    report.end()
}

fn compare(alone: &mut Measured, beside: &mut Measured, extent: Extent, report: &mut Report) {
    for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
        report.note(&format!("{name} of the healthy clients, alone"), alone.percentile(share), "ms");
        report.note(&format!("{name} beside the hostile clients"), beside.percentile(share), "ms");
    }
    if extent == Extent::Everything {
        let ratio = beside.percentile(0.99) / alone.percentile(0.99);
        report.at_most("p99, beside that without the hostile clients", ratio, "times", LATENCY);
    }
}

fn is_envelope(body: &[u8]) -> bool {
    body.starts_with(br#"{"ok":true,"#) && find(body, br#""rationale":"Paced.""#).is_some()
}
