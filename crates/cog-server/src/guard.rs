//! Access checks and limits in front of the routes.
//!
//! One middleware, [`enter`], applies each check in order. Each check is a file with a function and its tests.

mod body;
mod limits;
mod origin;
mod refusal;
mod request_log;
mod token;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue},
    middleware::Next,
    response::Response,
};

pub(crate) use self::{
    body::{Bodies, BodyLease, discard},
    limits::{Client, ClientBudgets, Drain, Rates, Slots},
    origin::{Host, Hosts, Origins, Page},
    refusal::Refusal,
    request_log::{parent_span, request_id},
    token::{Access, Credential},
};
pub use self::{
    origin::InvalidOrigin,
    token::{MissingAuthError, TokenFileError, Tokens},
};
use crate::{metrics::Metrics, timing};
use request_log::RequestLog;

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
    pub(crate) slots: Slots,
    pub(crate) budgets: ClientBudgets,
    pub(crate) bodies: Bodies,
    pub(crate) drain: Drain,
    pub(crate) metrics: Metrics,
    /// Whether a path needs no token.
    pub(crate) is_public: fn(&str) -> bool,
    /// Returns the response to a refused request to a path.
    pub(crate) refusal: fn(&str, Refusal) -> Response,
}

/// The paths that need no token during shutdown either.
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
/// The handler finds a [`Client`], a [`Host`] and a [`request_log::Trace`] in the extensions of the request. It may add a
/// [`timing::Timing`] to the extensions of the response.
pub(crate) async fn enter(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let mut log = RequestLog::open(&request, guard.metrics.clone(), guard.drain.enter());
    let (page, host) = guard.page(&request);
    let admitted = host.and_then(|host| Ok((host, guard.admit(&request)?)));
    let mut response = match admitted {
        Ok(_) if origin::is_preflight(request.method(), request.headers()) => origin::preflight(&page),
        Ok((host, client)) => {
            log.set_client(client.clone());
            request.extensions_mut().insert(host);
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(log.trace().clone());
            refusal::contain(log.trace().request_id(), next.run(request)).await
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

    /// The client, if the request is allowed.
    fn admit(&self, request: &Request<Body>) -> Result<Client, Refusal> {
        let peer = peer(request);
        if WITHOUT_TOKEN.contains(&request.uri().path()) {
            return Ok(Client::from_ip(peer.ip()));
        }
        self.drain.check()?;
        // The pages are public, so that a token can be entered there.
        if (self.is_public)(request.uri().path()) {
            let client = Client::from_ip(peer.ip());
            return self.rates.check(&client).map(|()| client);
        }
        if origin::is_preflight(request.method(), request.headers()) {
            return Ok(Client::from_ip(peer.ip()));
        }
        match self.access.client(request.headers(), peer) {
            Ok(client) => self.rates.check(&client).map(|()| client),
            // Wrong tokens count as requests of the client's IP address.
            Err(refusal) => Err(self.rates.check(&Client::from_ip(peer.ip())).err().unwrap_or(refusal)),
        }
    }

    /// Adds the headers of every response.
    fn mark(&self, response: &mut Response, page: &Page, log: &RequestLog) {
        let spent = response.extensions().get().copied();
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(request_log::REQUEST_ID, log.trace().request_id.clone());
        headers.insert(timing::SERVER_TIMING, timing::value(log.elapsed(), spent));
        headers.insert(axum::http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        origin::allow(page, headers);
        if self.origins.allows_others() {
            origin::vary(headers);
        }
    }
}

/// The peer of the connection; the unspecified address where a test calls the router without a connection.
fn peer(request: &Request<Body>) -> SocketAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0)
}

#[cfg(test)]
mod tests;
