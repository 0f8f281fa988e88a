//! The HTTP client for URLs that the operator configured.

use std::{error::Error, sync::OnceLock, time::Duration};

use bytes::Bytes;
use cog_spec::Secret;
use futures_util::TryStreamExt;
use http_body_util::Full;
use reqwest::{
    StatusCode, Url,
    header::{self, HeaderMap, HeaderValue},
    redirect,
};

use super::direct::Direct;
use crate::{
    ConnectErrorKind, WireRequest,
    transport::{KEPT_HEADERS, Pieces, Sending, Transport, TransportError, WireReply},
    vendors::Auth,
};

const USER_AGENT: &str = concat!("cog/", env!("CARGO_PKG_VERSION"));

/// A transport that sends requests over the network, with the key.
pub(super) struct Client {
    auth: Option<(Auth, Secret)>,
    connect: Duration,
    plain: bool,
    local: bool,
    /// The client for plain HTTP to this machine.
    direct: Option<Direct>,
    http: OnceLock<Result<reqwest::Client, TransportError>>,
}

impl Client {
    pub(super) fn new(base_url: &str, auth: Option<(Auth, Secret)>, connect: Duration) -> Self {
        let url = Url::parse(base_url).ok();
        let plain = url.as_ref().is_some_and(|url| url.scheme() == "http");
        let local = url.as_ref().and_then(Url::host_str).is_some_and(is_local);
        let direct = url
            .filter(|_| plain && local)
            .and_then(|url| Some(Direct::new(url.host_str()?, url.port_or_known_default()?, connect)));
        Self { auth, connect, plain, local, direct, http: OnceLock::new() }
    }

    /// Returns the client, and builds it at the first call. Loading certificates takes longer than the rest of a short
    /// run, so a client for plain HTTP loads none.
    fn http(&self) -> Result<&reqwest::Client, TransportError> {
        let built = self.http.get_or_init(|| self.build().map_err(|error| failed(&error)));
        built.as_ref().map_err(Clone::clone)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one client for addresses of the operator")]
    fn build(&self) -> reqwest::Result<reqwest::Client> {
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(self.connect)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never());
        if self.plain {
            builder = builder.tls_certs_only([]);
        }
        if self.local {
            builder = builder.no_proxy();
        }
        builder.build()
    }

    fn request(
        &self,
        http: &reqwest::Client,
        request: &WireRequest,
    ) -> Result<reqwest::Request, TransportError> {
        let mut builder = match request.method {
            "GET" => http.get(&request.url),
            _ => http.post(&request.url).body(request.body.clone()),
        };
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some((name, value)) = self.key_header()? {
            builder = builder.header(name, value);
        }
        builder.build().map_err(|error| failed(&error))
    }

    /// Builds the request for the direct client.
    fn direct_request(&self, request: &WireRequest) -> Result<hyper::Request<Full<Bytes>>, TransportError> {
        let unsound = |error: &dyn Error| TransportError::Connect { message: root_cause(error), kind: None };
        let url = Url::parse(&request.url).map_err(|error| unsound(&error))?;
        let host = url.host_str().unwrap_or_default();
        let mut builder = hyper::Request::builder()
            .method(request.method)
            .uri(url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path())))
            .header(header::HOST, url.port().map_or(host.to_owned(), |port| format!("{host}:{port}")))
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, "*/*");
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some((name, value)) = self.key_header()? {
            builder = builder.header(name, value);
        }
        let body = if request.method == "GET" { Bytes::new() } else { request.body.clone() };
        builder.body(Full::new(body)).map_err(|error| unsound(&error))
    }

    fn key_header(&self) -> Result<Option<(&'static str, HeaderValue)>, TransportError> {
        let Some((auth, key)) = &self.auth else { return Ok(None) };
        let (name, value) = auth.header(key.expose());
        let mut value = HeaderValue::try_from(value).map_err(|_| TransportError::BadKey)?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

fn wire_reply(status: StatusCode, headers: &HeaderMap, pieces: Pieces) -> WireReply {
    let header = |name: &'static str| Some((name, headers.get(name)?.to_str().ok()?.to_owned()));
    let headers = KEPT_HEADERS.into_iter().filter_map(header).collect();
    WireReply { status: status.as_u16(), headers, pieces }
}

impl Transport for Client {
    fn send<'a>(&'a self, request: &'a WireRequest) -> Sending<'a> {
        Box::pin(async move {
            if let Some(direct) = &self.direct {
                let (head, body) = direct.send(self.direct_request(request)?).await?.into_parts();
                return Ok(wire_reply(head.status, &head.headers, Box::pin(body)));
            }
            let http = self.http()?;
            let reply = http.execute(self.request(http, request)?).await.map_err(|error| failed(&error))?;
            let (status, headers) = (reply.status(), reply.headers().clone());
            let pieces = reply.bytes_stream().map_err(|error| TransportError::Broken(root_cause(&error)));
            Ok(wire_reply(status, &headers, Box::pin(pieces)))
        })
    }
}

fn failed(error: &reqwest::Error) -> TransportError {
    let message = root_cause(error);
    if error.is_connect() || error.is_builder() {
        TransportError::Connect { message, kind: ConnectErrorKind::among(error) }
    } else {
        TransportError::Broken(message)
    }
}

/// Returns the innermost cause, which is the informative one: `connection refused`, not `error sending request`.
pub(super) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Returns whether a host is this machine, which is called directly even if a proxy is set.
fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["localhost.evil.org", "10.0.0.1", "example.org", "[::2]"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
