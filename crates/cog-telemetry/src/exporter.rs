//! The thread that sends spans and metrics.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use cog_provider::{PlainClient, PlainRequest};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    otlp::{self, Dropped},
    settings::{Endpoint, Temporality},
    shared::{Shared, State, lock},
};

/// The maximum bytes of a response.
const MAX_RESPONSE: usize = 64 << 10;
/// The times between attempts to send a batch. A collector may ask for longer ones.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// The maximum time that a collector may ask for.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// The statuses of a response after which the same request may succeed (OTLP/HTTP, "Retryable Response Codes").
const RETRYABLE: [u16; 4] = [429, 502, 503, 504];

/// Starts the thread.
pub(crate) fn start(shared: &Arc<Shared>) {
    shared.set_state(State::Running);
    let own = Arc::clone(shared);
    // A thread of its own: a command without an async runtime exports too, and a runtime that ends takes no spans along.
    let thread = std::thread::Builder::new().name("cog-telemetry".to_owned());
    if let Err(error) = thread.spawn(move || run(&own)) {
        shared.set_state(State::Closed);
        shared.lose(0, 0, format!("cannot start a thread: {error}"));
    }
}

/// Exports until the program closes the telemetry.
fn run(shared: &Shared) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(Exporter::new(shared).run()),
        Err(error) => shared.lose(0, 0, format!("cannot start the async runtime: {error}")),
    }
    shared.set_state(State::Closed);
}

struct Exporter<'a> {
    shared: &'a Shared,
    traces: Option<Sender<'a>>,
    metrics: Option<Sender<'a>>,
    /// What the last export of metrics counted as lost.
    reported: Dropped,
}

impl<'a> Exporter<'a> {
    fn new(shared: &'a Shared) -> Self {
        let settings = &shared.settings;
        Self {
            shared,
            traces: settings.traces.as_ref().map(|endpoint| Sender::new(endpoint, shared)),
            metrics: settings.metrics.as_ref().map(|endpoint| Sender::new(endpoint, shared)),
            reported: Dropped { spans: 0, exports: 0 },
        }
    }

    /// Exports until the end of the program.
    async fn run(mut self) {
        let settings = &self.shared.settings;
        let mut spans_due = Instant::now() + settings.delay;
        let mut metrics_due = Instant::now() + settings.interval;
        while !self.shared.is_closing() {
            tokio::select! {
                () = self.shared.wake.notified() => {}
                () = sleep_until(spans_due.min(metrics_due)) => {}
            }
            // A full batch wakes the thread early. Spans that do not fill one wait for their time.
            let is_due = spans_due <= Instant::now();
            self.export_spans(is_due || self.shared.is_closing()).await;
            if is_due {
                spans_due = Instant::now() + settings.delay;
            }
            if metrics_due <= Instant::now() {
                self.export_metrics().await;
                metrics_due = Instant::now() + settings.interval;
            }
        }
        self.export_spans(true).await;
        self.export_metrics().await;
    }

    /// Exports full batches, and what is left of them if it is due.
    async fn export_spans(&self, is_due: bool) {
        let Some(sender) = &self.traces else { return };
        loop {
            let batch = lock(&self.shared.queue).take(is_due);
            let Some(batch) = batch else { return };
            let count = batch.spans as u64;
            // The end of the program may stop waiting in the middle of an export, and then counts these as lost.
            self.shared.in_flight.store(count, Relaxed);
            let sent = sender.send(otlp::traces(&self.shared.settings.resource, &batch.bytes)).await;
            // The end of the program has counted what it no longer waits for.
            let is_counted = self.shared.in_flight.swap(0, Relaxed) == 0;
            match sent {
                Ok(0) => {}
                Ok(rejected) => {
                    self.shared.lose(rejected, 0, format!("{} rejected {rejected} spans", sender.url()));
                }
                Err(reason) if !is_counted => self.shared.lose(count, 0, reason),
                Err(_) => {}
            }
        }
    }

    async fn export_metrics(&mut self) {
        let Some(sender) = &self.metrics else { return };
        let settings = &self.shared.settings;
        let total = Dropped {
            spans: self.shared.dropped_spans.load(Relaxed),
            exports: self.shared.dropped_exports.load(Relaxed),
        };
        let is_delta = settings.temporality == Temporality::Delta;
        let dropped = if is_delta { total.since(self.reported) } else { total };
        let end = otlp::now();
        let request = {
            let mut instruments = lock(&self.shared.instruments);
            let mut start = lock(&self.shared.counting_since);
            let period = (*start, end);
            let request =
                otlp::metrics(&settings.resource, &instruments, dropped, period, settings.temporality);
            // Before the export, also if it fails: what is counted meanwhile belongs to the next period.
            if is_delta {
                instruments.clear();
                *start = end;
            }
            request
        };
        self.reported = total;
        let Some(request) = request else { return };
        if let Err(reason) = sender.send(request).await {
            self.shared.lose(0, 1, reason);
        }
    }
}

/// Sends requests to one endpoint.
struct Sender<'a> {
    endpoint: &'a Endpoint,
    client: Result<PlainClient, String>,
    shared: &'a Shared,
}

/// Why a request was not accepted.
struct Refused {
    reason: String,
    /// Whether it may be accepted later, and when, if the collector says so.
    retry: Option<Option<Duration>>,
}

impl<'a> Sender<'a> {
    fn new(endpoint: &'a Endpoint, shared: &'a Shared) -> Self {
        let client = PlainClient::new(&endpoint.url, endpoint.timeout, MAX_RESPONSE);
        Self { endpoint, client, shared }
    }

    fn url(&self) -> &str {
        &self.endpoint.url
    }

    /// Sends a request, several times if the collector cannot accept it now. At the end of the program it is sent once.
    /// Returns the number of entries that the collector rejected.
    async fn send(&self, body: Vec<u8>) -> Result<u64, String> {
        let request = PlainRequest {
            method: "POST".to_owned(),
            url: self.endpoint.url.clone(),
            headers: self.endpoint.headers(),
            body,
        };
        let mut waits = BACKOFF.into_iter();
        loop {
            let refused = match self.send_once(&request).await {
                Ok(rejected) => return Ok(rejected),
                Err(refused) => refused,
            };
            let (Some(asked), Some(wait)) = (refused.retry, waits.next()) else { return Err(refused.reason) };
            if self.shared.is_closing() {
                return Err(refused.reason);
            }
            tokio::select! {
                () = sleep(asked.unwrap_or(wait).min(MAX_BACKOFF)) => {}
                () = self.closing() => {}
            }
        }
    }

    /// Waits until the program ends.
    async fn closing(&self) {
        while !self.shared.is_closing() {
            self.shared.wake.notified().await;
        }
    }

    async fn send_once(&self, request: &PlainRequest) -> Result<u64, Refused> {
        let client = self.client.as_ref().map_err(|reason| self.refused(reason, None))?;
        let response = client.send(request).await.map_err(|reason| self.refused(&reason, Some(None)))?;
        match response.status {
            200..=299 => Ok(otlp::rejected(&response.body)),
            status => {
                let after = response.headers.iter().find(|(name, _)| name == "retry-after");
                let after = after.and_then(|(_, value)| value.parse().ok()).map(Duration::from_secs);
                let retry = RETRYABLE.contains(&status).then_some(after);
                Err(self.refused(&format!("status {status}"), retry))
            }
        }
    }

    fn refused(&self, reason: &str, retry: Option<Option<Duration>>) -> Refused {
        Refused { reason: format!("{}: {reason}", self.url()), retry }
    }
}

impl Dropped {
    fn since(self, earlier: Self) -> Self {
        Self {
            spans: self.spans.saturating_sub(earlier.spans),
            exports: self.exports.saturating_sub(earlier.exports),
        }
    }
}
