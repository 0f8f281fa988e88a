//! What the server counts, and how it is read: `GET /metrics`, in the text form of OpenMetrics.
//!
//! Labels come from short lists: routes of the router, names of modules that were loaded and of providers that the
//! operator set up, codes of the table. Nothing of a request's address or body is ever a label.

mod http;
mod runs;

use std::{ops::Deref, sync::Arc};

use cog_run::sessions::SessionState;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

/// The content type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters of a server, which [`Server::with_metrics`](crate::Server::with_metrics) takes. They are a
/// [`cog_run::Observer`] too, for [`cog_run::RuntimeBuilder::observer`].
#[derive(Clone)]
pub struct Metrics(Arc<Counters>);

/// Each group of them.
pub struct Counters {
    pub(crate) http: http::Http,
    runs: runs::Runs,
    streams: Gauge,
    sessions: Family<State, Gauge>,
    available: Family<Provider, Gauge>,
    registry: Registry,
}

/// What is only known by looking at it.
pub(crate) struct Live {
    /// Streams that are open.
    pub(crate) streams: usize,
    /// The providers asked by default, and whether each is asked now.
    pub(crate) providers: Vec<(String, bool)>,
    /// How many sessions are in each state.
    pub(crate) sessions: [(SessionState, usize); 5],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: String,
}

impl Metrics {
    /// Counters that stand at nought.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cog");
        let (streams, sessions) = (Gauge::default(), Family::<State, Gauge>::default());
        let available = Family::<Provider, Gauge>::default();
        registry.register("streams_open", "Streams that are open", streams.clone());
        registry.register("sessions", "Sessions that are kept, by state", sessions.clone());
        let asked = "Whether a provider is asked now: 0 while its circuit is open";
        registry.register("provider_available", asked, available.clone());
        let (http, runs) = (http::Http::new(&mut registry), runs::Runs::new(&mut registry));
        Self(Arc::new(Counters { http, runs, streams, sessions, available, registry }))
    }

    /// All of them as text.
    pub(crate) fn text(&self, live: &Live) -> String {
        self.streams.set(gauge(live.streams));
        for (state, count) in &live.sessions {
            let state = State { state: state.as_str() };
            self.sessions.get_or_create(&state).set(gauge(*count));
        }
        for (provider, is_available) in &live.providers {
            let provider = Provider { provider: provider.clone() };
            self.available.get_or_create(&provider).set(i64::from(*is_available));
        }
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // A string takes whatever is written; a label that refuses to be written is a defect.
            Err(error) => {
                tracing::error!(%error, "the metrics cannot be written");
                String::from("# EOF\n")
            }
        }
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

#[cfg(test)]
mod tests;
