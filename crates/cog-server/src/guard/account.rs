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

/// One request, from its head to the last byte of its answer: written down when it is over, however it ends.
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
    _under_way: InFlightGuard,
}

/// How much of a path the log holds, in bytes.
const MAX_PATH: usize = 256;

/// What the log calls a request whose client left before there was an answer.
const CLIENT_LEFT: u16 = 499;

impl RequestLog {
    /// Opens the account of a request. The path is kept without its query.
    pub(crate) fn open(request: &Request<Body>, metrics: Metrics, under_way: InFlightGuard) -> Self {
        Self {
            metrics,
            started: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            route: request.extensions().get().cloned(),
            trace: Trace::of(request.headers()),
            client: None,
            status: None,
            refused: None,
            _under_way: under_way,
        }
    }

    /// How the request is found again.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Who asks, once that is known.
    pub(crate) fn is_of(&mut self, client: Client) {
        self.client = Some(client);
    }

    /// The time since the request's head.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes the answer. The account is closed with it: now, or where it is a stream, when that is over.
    pub(crate) fn close_with(mut self, response: Response) -> Response {
        self.status = Some(response.status());
        self.refused = response.extensions().get().copied();
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(LoggedBody { body, _account: self }))
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let status = self.status.map_or(CLIENT_LEFT, |status| status.as_u16());
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

/// A body that holds its request's account open.
struct LoggedBody {
    body: Body,
    _account: RequestLog,
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
