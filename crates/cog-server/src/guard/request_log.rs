use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::MatchedPath,
    http::{Method, Request, StatusCode},
    response::Response,
};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{client::Client, drain::InFlightGuard, refusal::Reason, trace::Trace};
use crate::metrics::Metrics;

/// The record of one request, from its headers to the last byte of the response. It is logged when dropped.
pub(crate) struct RequestLog {
    metrics: Metrics,
    started: Instant,
    method: Method,
    path: String,
    route: Option<MatchedPath>,
    trace: Trace,
    client: Option<Client>,
    status: Option<StatusCode>,
    refused: Option<Reason>,
    _in_flight: InFlightGuard,
}

/// The maximum length of a path in the log, in bytes.
const MAX_PATH: usize = 256;

/// The logged status of a request whose client disconnected before the response.
const CLIENT_DISCONNECTED: u16 = 499;

impl RequestLog {
    /// Starts the record of a request. The query is not stored.
    pub(crate) fn open(request: &Request<Body>, metrics: Metrics, in_flight: InFlightGuard) -> Self {
        Self {
            metrics,
            started: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            route: request.extensions().get().cloned(),
            trace: Trace::from_headers(request.headers()),
            client: None,
            status: None,
            refused: None,
            _in_flight: in_flight,
        }
    }

    /// The ids of the request.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Sets the client.
    pub(crate) fn set_client(&mut self, client: Client) {
        self.client = Some(client);
    }

    /// The time since the headers of the request.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Records the response. The record ends now, or with the body of a stream.
    pub(crate) fn close_with(mut self, response: Response) -> Response {
        self.status = Some(response.status());
        self.refused = response.extensions().get().copied();
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(LoggedBody { body, _log: self }))
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let status = self.status.map_or(CLIENT_DISCONNECTED, |status| status.as_u16());
        let route = self.route.as_ref().map_or("other", MatchedPath::as_str);
        let elapsed = self.started.elapsed();
        self.metrics.http.answered(&self.method, route, status, elapsed);
        if let Some(reason) = self.refused {
            self.metrics.http.refused(reason.as_str());
        }
        tracing::info!(
            target: "cog::access",
            request_id = self.trace.request_id(),
            client = self.client.as_ref().map(tracing::field::display),
            method = self.method.as_str(),
            path = self.path.get(..MAX_PATH).unwrap_or(&self.path),
            status,
            ms = format_args!("{:.3}", elapsed.as_secs_f64() * 1000.0),
            "answered"
        );
    }
}

/// A body that keeps the record of its request open.
struct LoggedBody {
    body: Body,
    _log: RequestLog,
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
