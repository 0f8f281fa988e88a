//! The metrics of a server, and their OpenMetrics text for `GET /metrics`.
//!
//! Labels have few values: routes, names of loaded modules and of configured providers, error codes. Nothing of a
//! request's URL or body is a label.

mod process;
mod runs;

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::Method;
use cog_run::{
    events::{RunEvents, RunReport},
    feedback::LabelKind,
    sessions::SessionState,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

/// The content type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a server, for [`Server::with_metrics`](crate::Server::with_metrics). They are also an
/// [`RunEvents`](cog_run::events::RunEvents), for [`cog_run::RuntimeBuilder::events`].
#[derive(Clone)]
pub struct Metrics(Arc<Counters>);

/// The groups of metrics.
pub struct Counters {
    pub(crate) http: Http,
    runs: runs::Runs,
    spent: runs::ClientSpending,
    streams: Gauge,
    labels: Family<Labelled, Counter>,
    sessions: Family<State, Gauge>,
    sessions_not_on_disk: Gauge,
    available: Family<Provider, Gauge>,
    registry: Registry,
    /// The runs of each client that has a token, by owner. The operator has bounded their number.
    clients: Mutex<HashMap<String, Arc<ClientMetrics>>>,
}

/// Values that are read when the metrics are requested.
pub(crate) struct Live {
    /// The number of open streams.
    pub(crate) streams: usize,
    /// The default providers, and whether each is available.
    pub(crate) providers: Vec<(String, bool)>,
    /// The number of sessions in each state.
    pub(crate) sessions: [(SessionState, usize); 5],
    /// The number of sessions whose file could not be written.
    pub(crate) sessions_not_on_disk: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labelled {
    module: String,
    label: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: String,
}

impl Metrics {
    /// Returns metrics whose counters are zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cog");
        let (streams, sessions) = (Gauge::default(), Family::<State, Gauge>::default());
        let available = Family::<Provider, Gauge>::default();
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the server", version);
        registry.register("streams_open", "Open streams", streams.clone());
        registry.register("sessions", "Stored sessions, by state", sessions.clone());
        let sessions_not_on_disk = Gauge::default();
        let help = "Sessions in memory only, because their file could not be written";
        registry.register("sessions_not_on_disk", help, sessions_not_on_disk.clone());
        let help = "Whether a provider is available: 0 while its circuit is open";
        registry.register("provider_available", help, available.clone());
        let labels = Family::<Labelled, Counter>::default();
        registry.register("labels", "Labels of runs, by module: right, wrong or corrected", labels.clone());
        let http = Http::new(&mut registry);
        let runs = runs::Runs::new(&mut registry);
        let spent = runs::ClientSpending::new(&mut registry);
        let clients = Mutex::default();
        Self(Arc::new(Counters {
            http,
            runs,
            spent,
            streams,
            labels,
            sessions,
            sessions_not_on_disk,
            available,
            registry,
            clients,
        }))
    }

    /// Counts a label.
    pub(crate) fn labelled(&self, module: &str, label: LabelKind) {
        let labelled = Labelled { module: module.to_owned(), label: label.as_str() };
        self.labels.get_or_create(&labelled).inc();
    }

    /// Returns the metrics of one client, which its runs report to.
    pub(crate) fn client(&self, owner: &str) -> Arc<ClientMetrics> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clients.get(owner) {
            return Arc::clone(known);
        }
        let metrics = Arc::new(ClientMetrics::new(owner, self.spent.clone()));
        clients.insert(owner.to_owned(), Arc::clone(&metrics));
        metrics
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self, live: &Live) -> String {
        self.streams.set(gauge(live.streams));
        for (state, count) in &live.sessions {
            let state = State { state: state.as_str() };
            self.sessions.get_or_create(&state).set(gauge(*count));
        }
        self.sessions_not_on_disk.set(gauge(live.sessions_not_on_disk));
        for (provider, is_available) in &live.providers {
            let provider = Provider { provider: provider.clone() };
            self.available.get_or_create(&provider).set(i64::from(*is_available));
        }
        process::with_process(text(&self.registry))
    }
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => text,
        // Writing to a string does not fail; a label that cannot be encoded is a bug.
        Err(error) => {
            tracing::error!(%error, "cannot encode the metrics");
            String::from("# EOF\n")
        }
    }
}

/// The metrics that one client of a server with tokens may read: its own runs and streams.
pub(crate) struct ClientMetrics {
    /// The name of the client's token.
    name: String,
    /// What the operator reads of all clients.
    spent: runs::ClientSpending,
    runs: runs::RunCounters,
    streams: Gauge,
    registry: Registry,
}

impl ClientMetrics {
    fn new(owner: &str, spent: runs::ClientSpending) -> Self {
        let mut registry = Registry::with_prefix("cog");
        let streams = Gauge::default();
        registry.register("streams_open", "Open streams", streams.clone());
        let name = owner.strip_prefix("token:").unwrap_or(owner).to_owned();
        Self { name, spent, runs: runs::RunCounters::new(&mut registry), streams, registry }
    }

    /// Returns the metrics as text, with the number of the client's open streams.
    pub(crate) fn text(&self, streams: usize) -> String {
        self.streams.set(gauge(streams));
        text(&self.registry)
    }
}

/// It is registered for each run of the client, so that the parts of a run are not counted again.
impl RunEvents for ClientMetrics {
    fn run_ended(&self, run: &RunReport<'_>) {
        self.runs.count(run);
        self.spent.count(&self.name, run);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Metrics {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.0
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

// Metrics of requests.

/// The metrics of requests.
pub(crate) struct Http {
    requests: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    refused: Family<Refused, Counter>,
    write_timeouts: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

/// The buckets of requests: from a fast response to the longest stream.
const SECONDS: [f64; 14] = [0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 300.0];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Http {
    fn new(registry: &mut Registry) -> Self {
        let seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        let http = Self {
            requests: Family::default(),
            seconds,
            refused: Family::default(),
            write_timeouts: Counter::default(),
        };
        let requests =
            "Requests, by method, route and status; 499 where the client disconnected before the response";
        registry.register("http_requests", requests, http.requests.clone());
        let seconds = "Seconds from a request's headers to the end of the response, by route";
        registry.register("http_request_seconds", seconds, http.seconds.clone());
        registry.register(
            "refused",
            "Requests refused by a limit or an access check, by reason",
            http.refused.clone(),
        );
        let timeouts = "Connections closed because the client did not read";
        registry.register("write_timeouts", timeouts, http.write_timeouts.clone());
        http
    }

    /// Counts a request that has ended.
    pub(crate) fn answered(&self, method: &Method, route: &str, status: u16, elapsed: Duration) {
        // A label per made-up method would let clients fill the memory.
        let method = known(method);
        let route = route.to_owned();
        self.requests.get_or_create(&Answered { method, route: route.clone(), status }).inc();
        self.seconds.get_or_create(&Route { route }).observe(elapsed.as_secs_f64());
    }

    /// Counts a refused request.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Refused { reason }).inc();
    }

    /// Counts a connection that was closed because the client did not read.
    pub(crate) fn write_timeout(&self) {
        self.write_timeouts.inc();
    }
}

/// The method, or `other` for one that no route has: clients can send any text.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests;
