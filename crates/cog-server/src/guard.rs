//! What stands before the routes: who may ask, how much, and how it ends.
//!
//! One middleware, [`enter`], asks each guard in turn; each guard is a file with a plain function and its tests.

pub(crate) mod body;

mod account;
mod client;
mod cors;
mod drain;
mod host;
mod origin;
mod panics;
mod rate;
mod refusal;
mod slots;
mod stall;
mod token;
mod trace;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

pub use origin::InvalidOrigin;
pub use token::{MissingAuthError, TokenFileError, Tokens};

pub(crate) use client::Client;
pub(crate) use drain::Drain;
pub(crate) use host::{Host, Hosts};
pub(crate) use origin::{Origins, Page};
pub(crate) use rate::Rates;
pub(crate) use refusal::Refusal;
pub(crate) use slots::Slots;
pub(crate) use stall::WriteTimeout;
pub(crate) use token::Access;
pub(crate) use trace::trace_id;

use crate::{metrics::Metrics, timing};
use account::RequestLog;

/// The guards of a server, and what they count.
#[derive(Clone)]
pub(crate) struct Guard(Arc<Guards>);

/// Each guard.
pub(crate) struct Guards {
    pub(crate) hosts: Hosts,
    pub(crate) origins: Origins,
    pub(crate) access: Access,
    pub(crate) rates: Rates,
    pub(crate) slots: Slots,
    pub(crate) drain: Drain,
    pub(crate) metrics: Metrics,
    /// Whether a path needs no token.
    pub(crate) is_public: fn(&str) -> bool,
}

/// What may be asked without a token: whether the server is there.
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

/// The middleware: lets a request in or answers it with why not, and keeps its account.
///
/// The handler finds a [`Client`], a [`Host`] and a [`trace::Trace`] in the extensions; it may leave a [`timing::Timing`] in those of
/// its response.
pub(crate) async fn enter(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let mut account = RequestLog::open(&request, guard.metrics.clone(), guard.drain.enter());
    let (page, host) = guard.page(&request);
    let admitted = host.and_then(|host| Ok((host, guard.admit(&request)?)));
    let mut response = match admitted {
        Ok(_) if cors::is_preflight(request.method(), request.headers()) => cors::preflight(&page),
        Ok((host, client)) => {
            account.is_of(client.clone());
            request.extensions_mut().insert(host);
            request.extensions_mut().insert(client);
            request.extensions_mut().insert(account.trace().clone());
            panics::contain(account.trace().request_id(), next.run(request)).await
        }
        Err(refusal) => refusal.into_response(),
    };
    guard.mark(&mut response, &page, &account);
    account.close_with(response)
}

impl Guards {
    /// Whose page asks, and, where it may, under which name of the server.
    fn page(&self, request: &Request<Body>) -> (Page, Result<Host, Refusal>) {
        let host = self.hosts.check(request.uri(), request.headers());
        match host.and_then(|host| Ok((self.origins.check(request.headers(), &host)?, host))) {
            Ok((page, host)) => (page, Ok(host)),
            Err(refusal) => (Page::Own, Err(refusal)),
        }
    }

    /// Who asks, where they may.
    fn admit(&self, request: &Request<Body>) -> Result<Client, Refusal> {
        let peer = peer(request);
        if WITHOUT_TOKEN.contains(&request.uri().path()) {
            return Ok(Client::of_peer(peer.ip()));
        }
        self.drain.check()?;
        // Pages must be there before a token can be typed.
        if (self.is_public)(request.uri().path()) {
            let client = Client::of_peer(peer.ip());
            return self.rates.check(&client).map(|()| client);
        }
        if cors::is_preflight(request.method(), request.headers()) {
            return Ok(Client::of_peer(peer.ip()));
        }
        match self.access.client(request.headers(), peer) {
            Ok(client) => self.rates.check(&client).map(|()| client),
            // Guesses are counted too, for the address that they come from.
            Err(refusal) => Err(self.rates.check(&Client::of_peer(peer.ip())).err().unwrap_or(refusal)),
        }
    }

    /// The headers that every answer has.
    fn mark(&self, response: &mut Response, page: &Page, account: &RequestLog) {
        let spent = response.extensions().get().copied();
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(trace::REQUEST_ID, account.trace().request_id.clone());
        headers.insert(timing::SERVER_TIMING, timing::value(account.elapsed(), spent));
        headers.insert(axum::http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        cors::allow(page, headers);
        if self.origins.is_open() {
            cors::vary(headers);
        }
    }
}

/// The other end of the connection; the unspecified address where nobody has said, as in tests of the router alone.
fn peer(request: &Request<Body>) -> SocketAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0)
}

#[cfg(test)]
mod tests;
