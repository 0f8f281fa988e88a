//! Many clients at once, each with a connection of its own.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::LocalSet;

use crate::{http::Connection, process::Process, report::percentile};

/// The requests that clients repeat.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) request: Arc<[u8]>,
    /// Whether an answer is the right one.
    pub(crate) is_right: fn(&[u8]) -> bool,
}

/// When each client sends its next request.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// As soon as it has its answer.
    AtOnce,
    /// So often, whatever the answers take: a late answer counts from when it was due.
    Every(Duration),
}

/// How long each answer took, in milliseconds, and how long all of it.
pub(crate) struct Measured {
    pub(crate) latencies: Vec<f64>,
    pub(crate) elapsed: Duration,
}

impl Measured {
    pub(crate) fn per_second(&self) -> f64 {
        count(self.latencies.len()) / self.elapsed.as_secs_f64()
    }

    pub(crate) fn percentile(&mut self, share: f64) -> f64 {
        percentile(&mut self.latencies, share)
    }
}

/// What the answers cost a process.
pub(crate) struct Cost {
    pub(crate) measured: Measured,
    /// Processor time of each request, in microseconds.
    pub(crate) processor: f64,
}

/// Measures what a process needs for requests that follow each other at once.
pub(crate) async fn cost(process: &Process, load: &Load, clients: u32) -> Cost {
    const LENGTH: Duration = Duration::from_secs(3);
    const WARM_UP: Duration = Duration::from_secs(1);
    hammer(load, clients, Pace::AtOnce, WARM_UP).await;
    let before = process.ticks();
    let measured = hammer(load, clients, Pace::AtOnce, LENGTH).await;
    // A tick is 10 ms.
    let processor = (process.ticks() - before) * 10_000.0 / count(measured.latencies.len());
    Cost { measured, processor }
}

/// Has so many clients ask for so long. Every answer is awaited and checked.
pub(crate) async fn hammer(load: &Load, clients: u32, pace: Pace, length: Duration) -> Measured {
    let started = Instant::now();
    let set = LocalSet::new();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let offset = match pace {
                Pace::AtOnce => Duration::ZERO,
                Pace::Every(every) => every * client / clients,
            };
            set.spawn_local(one(load.clone(), pace, started + offset, started + length))
        })
        .collect();
    set.await;
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    Measured { latencies, elapsed: started.elapsed() }
}

async fn one(load: Load, pace: Pace, first: Instant, end: Instant) -> Vec<f64> {
    let mut connection = Connection::open(load.address).await.unwrap();
    let (mut body, mut latencies, mut due) = (Vec::new(), Vec::new(), first);
    while due < end {
        if let Pace::Every(_) = pace {
            tokio::time::sleep_until(due.into()).await;
        }
        let status = connection.ask(&load.request, &mut body).await.unwrap();
        assert!(status == 200 && (load.is_right)(&body), "{status}: {}", String::from_utf8_lossy(&body));
        latencies.push(due.elapsed().as_secs_f64() * 1000.0);
        due = match pace {
            Pace::AtOnce => Instant::now(),
            Pace::Every(every) => due + every,
        };
    }
    latencies
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
