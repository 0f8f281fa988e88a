//! Access checks and limits in front of the routes.
//!
//! One middleware, [`enter`], applies each check in order. Each check is a file with a function and its tests.

mod body;
mod limits;
mod origin;
mod request_log;
mod token;

use std::{any::Any, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use cog_run::{ClientBudgets, ClientRules};
use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;
use request_log::RequestLog;

use crate::{answer, metrics::Metrics, timing};

pub(crate) use self::{
    body::{Bodies, BodyLease, discard},
    limits::{Client, Drain, Rates, Slots},
    origin::{Host, Hosts, Origins, Page},
    request_log::{RequestRuns, parent_span, request_id},
    token::{Access, Credential, Grant},
};
pub use self::{
    origin::InvalidOrigin,
    token::{MissingAuthError, TokenFileError, Tokens},
};

/// The checks of a server, and their metrics.
#[derive(Clone)]
pub(crate) struct Guard(Arc<Guards>);

/// Each check.
pub(crate) struct Guards {
    pub(crate) hosts: Hosts,
    pub(crate) origins: Origins,
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    /// The rate of WebSocket messages that start no run, such as pings.
    pub(crate) messages: Rates,
    /// The rate of labels for runs.
    pub(crate) feedback: Rates,
    pub(crate) slots: Slots,
    pub(crate) budgets: Arc<ClientBudgets>,
    pub(crate) bodies: Bodies,
    pub(crate) drain: Drain,
    pub(crate) metrics: Metrics,
    /// Whether a path needs no token.
    pub(crate) is_public: fn(&str) -> bool,
    /// Returns the response to a refused request to a path.
    pub(crate) refusal: fn(&str, Refusal) -> Response,
    /// Returns the response with this error to a request to a path.
    pub(crate) failure: fn(&str, StatusCode, ErrorBody) -> Response,
}

/// An error whose message is for the operator; an extension of the response that contains it.
#[derive(Debug, Clone)]
pub(crate) struct OperatorError(pub(crate) ErrorBody);

/// The paths that need no token and have no limits.
const WITHOUT_TOKEN: &[&str] = &["/health", "/ready"];

impl From<Guards> for Guard {
    fn from(guards: Guards) -> Self {
        Self(Arc::new(guards))
    }
}

impl std::ops::Deref for Guard {
    type Target = Guards;

    fn deref(&self) -> &Guards {
        &self.0
    }
}

/// The middleware: passes a request on or refuses it, and logs it.
///
/// The handler finds a [`Client`], its [`Grant`], a [`Host`], a [`Page`], a [`request_log::Trace`] and [`RequestRuns`] in the extensions of the
/// request. It may add a [`timing::Timing`] and an [`OperatorError`] to the extensions of the response.
pub(crate) async fn enter(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let mut log = RequestLog::open(&request, guard.metrics.clone(), guard.drain.enter());
    // Host and Origin come before the token: a page of another site must not learn whether a token is valid.
    let (page, host) = guard.page(&request);
    let admitted = host.and_then(|host| Ok((host, guard.admit(&request)?)));
    let mut response = match admitted {
        Ok(_) if origin::is_preflight(request.method(), request.headers()) => origin::preflight(&page),
        Ok((host, (client, grant))) => {
            log.set_client(client.clone());
            let path = request.uri().path().to_owned();
            let is_operator = grant.is_operator;
            request.extensions_mut().insert(host);
            request.extensions_mut().insert(page.clone());
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(grant);
            request.extensions_mut().insert(log.trace().clone());
            request.extensions_mut().insert(log.runs().clone());
            let response = contain(log.trace().request_id(), next.run(request)).await;
            if is_operator { response } else { guard.hide(&path, &log, response) }
        }
        Err(refusal) => (guard.refusal)(request.uri().path(), refusal),
    };
    guard.mark(&mut response, &page, &log);
    log.close_with(response)
}

impl Guards {
    /// The origin of the page that sends the request, and the host that it names.
    fn page(&self, request: &Request<Body>) -> (Page, Result<Host, Refusal>) {
        let host = self.hosts.check(request.uri(), request.headers());
        match host.and_then(|host| Ok((self.origins.check(request.headers(), &host)?, host))) {
            Ok((page, host)) => (page, Ok(host)),
            Err(refusal) => (Page::Own, Err(refusal)),
        }
    }

    /// The client and what it may do, if the request is allowed.
    fn admit(&self, request: &Request<Body>) -> Result<(Client, Grant), Refusal> {
        let admitted = self.identify(request)?;
        // Here and not where a body is read, so that no route can forget it.
        body::check(request.headers())?;
        Ok(admitted)
    }

    fn identify(&self, request: &Request<Body>) -> Result<(Client, Grant), Refusal> {
        let peer = peer(request);
        let anonymous = (Client::from_ip(peer.ip()), Grant::default());
        // Probes are not limited: an orchestrator restarts a server whose probe fails.
        if WITHOUT_TOKEN.contains(&request.uri().path()) {
            return Ok(anonymous);
        }
        // The pages are public, so that a token can be entered there.
        if (self.is_public)(request.uri().path()) {
            return self.rates.check(&anonymous.0).map(|()| anonymous);
        }
        // A browser sends a preflight without the token.
        if origin::is_preflight(request.method(), request.headers()) {
            return Ok(anonymous);
        }
        match self.access.client(request.headers(), peer) {
            Ok((client, grant)) => {
                self.rates.check(&client)?;
                match grant.only_metrics && request.uri().path() != METRICS {
                    true => Err(only_metrics()),
                    false => Ok((client, grant)),
                }
            }
            // Wrong tokens count as requests of the client's IP address.
            Err(refusal) => Err(self.rates.check(&anonymous.0).err().unwrap_or(refusal)),
        }
    }

    /// Replaces an error that is for the operator, if clients have tokens: then they are others than the operator. The errors of runs
    /// were replaced where they left their run, before a stream or a stored session contains them.
    fn hide(&self, path: &str, log: &RequestLog, mut response: Response) -> Response {
        let error = response.extensions_mut().remove::<OperatorError>().filter(|_| self.access.has_tokens());
        let Some(OperatorError(error)) = error else { return response };
        let mut rules = ClientRules::default();
        rules.request_id = Some(log.trace().request_id().into());
        (self.failure)(path, response.status(), rules.shown(error))
    }

    /// Adds the headers of every response.
    fn mark(&self, response: &mut Response, page: &Page, log: &RequestLog) {
        let spent = response.extensions().get().copied();
        let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(request_log::REQUEST_ID, log.trace().request_id.clone());
        headers.insert(timing::SERVER_TIMING, timing::value(log.elapsed(), spent));
        headers.insert(axum::http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A client that reuses connections takes the next one to another server. An upgraded connection is not closed.
        if self.drain.announced.is_cancelled() && !is_upgrade {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        origin::allow(page, headers);
        if self.origins.allows_others() {
            origin::vary(headers);
        }
    }
}

/// The path of the metrics.
const METRICS: &str = "/metrics";

fn only_metrics() -> Refusal {
    let error = ErrorBody::new(Code::PermissionDenied, "this token may only read /metrics")
        .suggest("Use a token without `scope=metrics`.");
    Refusal::new(Reason::Scope, StatusCode::FORBIDDEN, error)
}

/// The peer of the connection; the unspecified address where a test calls the router without a connection.
fn peer(request: &Request<Body>) -> SocketAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0)
}

/// Why a request is refused: an envelope with its status and headers.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Box<ErrorBody>,
    headers: HeaderMap,
    reason: Reason,
}

/// The check that refused: a label of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// A missing or wrong token.
    Token,
    /// A token that may not use the route.
    Scope,
    /// A compressed body.
    Encoding,
    /// A host that is not accepted.
    Host,
    /// An origin that is not allowed.
    Origin,
    /// Too many requests of one client.
    Rate,
    /// Too many streams of one client.
    ClientStreams,
    /// Too many streams in total.
    AllStreams,
    /// Too many large bodies in total.
    AllBodies,
    /// A body that is too large.
    BodySize,
    /// A body that does not arrive.
    BodySlow,
}

impl Reason {
    /// The label.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Scope => "scope",
            Self::Encoding => "encoding",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Rate => "rate",
            Self::ClientStreams => "max_streams_per_client",
            Self::AllStreams => "max_streams",
            Self::AllBodies => "max_body_bytes_total",
            Self::BodySize => "body_size",
            Self::BodySlow => "body_slow",
        }
    }
}

impl Refusal {
    /// A refusal with this status.
    pub(crate) fn new(reason: Reason, status: StatusCode, error: ErrorBody) -> Self {
        Self { status, error: Box::new(error), headers: HeaderMap::new(), reason }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds `Retry-After`, in whole seconds and at least one.
    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    /// Closes the connection after the response.
    pub(crate) fn close(self) -> Self {
        self.header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// The check that refused.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    /// The error in the envelope.
    pub(crate) fn error(&self) -> &ErrorBody {
        &self.error
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = answer::json(self.status, &Envelope::failure(*self.error));
        response.headers_mut().extend(self.headers);
        response.extensions_mut().insert(self.reason);
        response
    }
}

/// Returns the response of a handler, or 500 E4000 if it panics. Other requests are not affected.
///
/// The panic's message goes to the log only: it can contain anything.
pub(crate) async fn contain(request_id: &str, answer: impl Future<Output = Response>) -> Response {
    // Handlers share only channels, atomics and locks whose poison is ignored, which are safe after a panic.
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!(request_id, panic = message(panic.as_ref()), "request handler panicked");
            internal_error(request_id)
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)")
}

fn internal_error(request_id: &str) -> Response {
    let error = ErrorBody::new(Code::InternalError, "internal server error")
        .suggest(format!("Report this bug; the server log has details under {request_id}."));
    answer::envelope(&Envelope::failure(error))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod refusal_tests {
    use axum::{body::to_bytes, http::StatusCode, response::IntoResponse as _};
    use cog_spec::Code;

    use super::*;

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        let seconds = |wait| {
            let error = ErrorBody::new(Code::RateLimited, "too many");
            let refusal = Refusal::new(Reason::Rate, StatusCode::TOO_MANY_REQUESTS, error).retry_after(wait);
            refusal.into_response().headers()[header::RETRY_AFTER].to_str().unwrap().to_owned()
        };
        assert_eq!(seconds(Duration::ZERO), "1");
        assert_eq!(seconds(Duration::from_millis(1001)), "2");
        assert_eq!(seconds(Duration::from_secs(3)), "3");
    }

    #[tokio::test]
    async fn panic_returns_500_without_its_message() {
        let key = String::from("sk-canary");
        let response = contain("r-1", async move { panic!("the key is {key}") }).await;
        assert_eq!(response.status(), 500);
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(r#""code":"E4000""#) && body.contains("r-1"), "{body}");
        assert!(!body.contains("canary"), "{body}");
    }

    #[tokio::test]
    async fn response_without_panic_is_unchanged() {
        let response = contain("r-1", async { StatusCode::IM_A_TEAPOT.into_response() }).await;
        assert_eq!(response.status(), 418);
    }
}
