//! Requests.

use std::time::Duration;

use axum::http::Method;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// What is counted of requests.
pub(crate) struct Http {
    requests: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    refused: Family<Refused, Counter>,
    slow_readers: Counter,
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

/// From what a cached answer takes to what the longest stream may.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0, 300.0];

pub(super) fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

impl Http {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        let http = Self {
            requests: Family::default(),
            seconds,
            refused: Family::default(),
            slow_readers: Counter::default(),
        };
        let requests = "Requests, by method, route and status; 499 where the client left before the answer";
        registry.register("http_requests", requests, http.requests.clone());
        let seconds = "Seconds from a request's head to the end of its answer, by route";
        registry.register("http_request_seconds", seconds, http.seconds.clone());
        registry.register("refused", "Requests that a guard refused, by reason", http.refused.clone());
        let slow = "Connections closed because the client read too slowly";
        registry.register("slow_readers", slow, http.slow_readers.clone());
        http
    }

    /// A request is over.
    pub(crate) fn answered(&self, method: &Method, route: &str, status: u16, elapsed: Duration) {
        let (method, route) = (known(method), route.to_owned());
        self.requests.get_or_create(&Answered { method, route: route.clone(), status }).inc();
        self.seconds.get_or_create(&Route { route }).observe(elapsed.as_secs_f64());
    }

    /// A guard refused a request.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Refused { reason }).inc();
    }

    /// A connection was closed because nobody read.
    pub(crate) fn slow_reader(&self) {
        self.slow_readers.inc();
    }
}

/// The method, where it is one that routes have: a client can send any word.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
