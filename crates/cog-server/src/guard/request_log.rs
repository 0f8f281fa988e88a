use std::{
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::MatchedPath,
    http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode},
    response::Response,
};
use bytes::Bytes;
use cog_run::events::{RunEvents, RunOutcome, RunReport, SpanContext};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{
    Reason,
    limits::{Client, InFlightGuard},
};
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
    runs: RequestRuns,
    _in_flight: InFlightGuard,
}

/// The runs of a request, for its line in the log: numbers and names, nothing of their contents.
#[derive(Clone, Default)]
pub(crate) struct RequestRuns(Arc<Mutex<Option<EndedRuns>>>);

/// The runs of a request that have ended.
#[derive(Default)]
struct EndedRuns {
    /// The module of the last run.
    module: String,
    /// The code of the last run; empty if it answered.
    code: String,
    input_tokens: u64,
    output_tokens: u64,
    /// The cost in US dollars, of the calls with a known price.
    cost: Option<f64>,
}

impl RunEvents for RequestRuns {
    fn run_ended(&self, run: &RunReport<'_>) {
        // The tokens of a nested run are in the run around it.
        if run.is_nested {
            return;
        }
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = ended.get_or_insert_default();
        ended.module.clone_from(&run.module.manifest.name);
        ended.code = match run.outcome {
            RunOutcome::Failed(code) => code.as_str().to_owned(),
            RunOutcome::Answered => String::new(),
            _ => "dropped".to_owned(),
        };
        let Some(usage) = run.usage else { return };
        ended.input_tokens += usage.input_tokens;
        ended.output_tokens += usage.output_tokens;
        if let Some(cost) = usage.cost {
            *ended.cost.get_or_insert_default() += cost.amount.as_f64();
        }
    }
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
            runs: RequestRuns::default(),
            _in_flight: in_flight,
        }
    }

    /// The ids of the request.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The runs of the request, which the handler registers as a listener.
    pub(crate) fn runs(&self) -> &RequestRuns {
        &self.runs
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
        // The bytes of a complete body are sent later, but its record ends here, which saves a box per request.
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
        let runs = self.runs.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let runs = runs.as_ref();
        tracing::info!(
            target: "cog::access",
            request_id = self.trace.request_id(),
            client = self.client.as_ref().map(tracing::field::display),
            method = self.method.as_str(),
            path = self.path.get(..MAX_PATH).unwrap_or(&self.path),
            status,
            ms = format_args!("{:.3}", elapsed.as_secs_f64() * 1000.0),
            module = runs.map(|runs| runs.module.as_str()),
            code = runs.map(|runs| runs.code.as_str()).filter(|code| !code.is_empty()),
            input_tokens = runs.map(|runs| runs.input_tokens),
            output_tokens = runs.map(|runs| runs.output_tokens),
            cost_usd = runs.and_then(|runs| runs.cost),
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

/// The header with the id of a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The ids of a request: in the log, in the traces of the caller, in `meta`.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// The caller's id of the request, or a generated one.
    pub(crate) request_id: HeaderValue,
    /// The span of the caller (W3C `traceparent` and `tracestate`), to which its run belongs.
    pub(crate) parent: Option<SpanContext>,
}

/// The span of the caller, which the guard has set.
pub(crate) fn parent_span(extensions: &Extensions) -> Option<SpanContext> {
    extensions.get::<Trace>().and_then(|trace| trace.parent.clone())
}

/// The request id that the guard has set; empty where a test calls the router without a guard.
pub(crate) fn request_id(extensions: &Extensions) -> String {
    extensions.get::<Trace>().map(|trace| trace.request_id().to_owned()).unwrap_or_default()
}

/// The maximum length of a request id that is accepted.
const MAX_LEN: usize = 128;

impl Trace {
    /// Reads the ids from the headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let request_id =
            headers.get(REQUEST_ID).filter(|id| is_plain(id)).cloned().unwrap_or_else(generate_id);
        let parent = text(headers, "traceparent")
            .and_then(|parent| SpanContext::parse(parent, text(headers, "tracestate")));
        Self { request_id, parent }
    }

    /// The request id as text.
    pub(crate) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Letters, digits and `-._:/+=`, which are safe in a log.
fn is_plain(id: &HeaderValue) -> bool {
    (1..=MAX_LEN).contains(&id.len())
        && id.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._:/+=".contains(byte))
}

/// Generates an id that is unique in this process and unlikely in another.
fn generate_id() -> HeaderValue {
    static PROCESS: LazyLock<u32> = LazyLock::new(|| {
        let random = RandomState::new().hash_one(std::process::id()).to_be_bytes();
        random.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let text = format!("{:08x}-{:x}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(name: &'static str, value: &str) -> Trace {
        Trace::from_headers(&HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]))
    }

    #[test]
    fn span_of_the_caller_is_used() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = with_header("traceparent", header).parent.unwrap();
        assert_eq!((found.traceparent().as_str(), found.state), (header, None));
        let mut headers =
            HeaderMap::from_iter([(HeaderName::from_static("traceparent"), header.parse().unwrap())]);
        headers.insert("tracestate", HeaderValue::from_static("vendor=1"));
        assert_eq!(Trace::from_headers(&headers).parent.unwrap().state.as_deref(), Some("vendor=1"));
        assert_eq!(with_header("traceparent", "00-no-no-01").parent, None);
    }

    #[test]
    fn valid_request_id_of_the_caller_is_used() {
        assert_eq!(with_header("x-request-id", "req-1:a/b").request_id(), "req-1:a/b");
        assert_eq!(with_header("x-request-id", &"a".repeat(128)).request_id(), "a".repeat(128));
        for id in ["a b", "", "a\"b", &"a".repeat(129)] {
            assert_ne!(with_header("x-request-id", id).request_id(), id);
        }
        let none = HeaderMap::new();
        assert_ne!(Trace::from_headers(&none).request_id(), Trace::from_headers(&none).request_id());
    }
}
