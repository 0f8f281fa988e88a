//! Metrics of requests.

use std::time::Duration;

use axum::http::Method;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

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

/// The buckets: from a fast response to the longest stream.
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
        let (method, route) = (known(method), route.to_owned());
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
