//! The HTTP client for URLs that the operator configured.

use std::{error::Error, sync::OnceLock, time::Duration};

use bytes::Bytes;
use cog_spec::Secret;
use futures_util::TryStreamExt as _;
use http_body_util::Full;
use reqwest::{
    Method, StatusCode, Url,
    header::{self, HeaderMap, HeaderValue},
    redirect,
};

use super::{direct::Direct, error::root_cause};
use crate::{
    ConnectErrorKind, WireRequest,
    transport::{BodyStream, REPLY_HEADERS, SendFuture, Transport, TransportError, WireReply},
    vendors::Auth,
};

pub(super) const USER_AGENT: &str = concat!("cog/", env!("CARGO_PKG_VERSION"));

/// Installs the cryptography of TLS, unless the program has installed one of its own. A client cannot be built without.
pub(super) fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A transport that sends requests over the network, with the key.
pub(super) struct Client {
    auth: Option<(Auth, Secret)>,
    connect_timeout: Duration,
    /// Whether the URL is plain HTTP.
    is_plain: bool,
    /// Whether the server is on this machine.
    is_local: bool,
    /// The client for plain HTTP to this machine.
    direct: Option<Direct>,
    http: OnceLock<Result<reqwest::Client, TransportError>>,
}

impl Client {
    pub(super) fn new(base_url: &str, auth: Option<(Auth, Secret)>, connect_timeout: Duration) -> Self {
        let url = Url::parse(base_url).ok();
        let is_plain = url.as_ref().is_some_and(|url| url.scheme() == "http");
        let is_local = url.as_ref().and_then(Url::host_str).is_some_and(is_local_host);
        let direct = url.filter(|_| is_plain && is_local).and_then(|url| {
            Some(Direct::new(url.host_str()?, url.port_or_known_default()?, connect_timeout))
        });
        Self { auth, connect_timeout, is_plain, is_local, direct, http: OnceLock::new() }
    }

    /// Returns the client, and builds it at the first call. Loading certificates takes longer than the rest of a short
    /// run, so a client for plain HTTP loads none.
    fn http(&self) -> Result<&reqwest::Client, TransportError> {
        let client = self.http.get_or_init(|| self.build().map_err(|error| transport_error(&error)));
        client.as_ref().map_err(Clone::clone)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the only client for URLs of the operator")]
    fn build(&self) -> reqwest::Result<reqwest::Client> {
        install_crypto();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(self.connect_timeout)
            // The target of a redirect would receive the key.
            .redirect(redirect::Policy::none())
            // The library repeats requests unseen; ours are counted in budgets, and reported.
            .retry(reqwest::retry::never());
        if self.is_plain {
            builder = builder.tls_certs_only([]);
        }
        // A proxy would look for the address on its own machine.
        if self.is_local {
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
            "DELETE" => http.delete(&request.url),
            _ => http.post(&request.url).body(request.body.clone()),
        };
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some((name, value)) = self.key_header()? {
            builder = builder.header(name, value);
        }
        builder.build().map_err(|error| transport_error(&error))
    }

    /// Builds the request for the direct client.
    fn direct_request(&self, request: &WireRequest) -> Result<hyper::Request<Full<Bytes>>, TransportError> {
        let url = Url::parse(&request.url).map_err(|error| invalid(&error))?;
        let host = url.host_str().unwrap_or_default();
        let mut builder = hyper::Request::builder()
            .method(request.method)
            .uri(url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path())))
            .header(header::HOST, url.port().map_or(host.to_owned(), |port| format!("{host}:{port}")))
            .header(header::USER_AGENT, USER_AGENT);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some((name, value)) = self.key_header()? {
            builder = builder.header(name, value);
        }
        let body = if request.method == "GET" { Bytes::new() } else { request.body.clone() };
        builder.body(Full::new(body)).map_err(|error| invalid(&error))
    }

    fn key_header(&self) -> Result<Option<(&'static str, HeaderValue)>, TransportError> {
        let Some((auth, key)) = &self.auth else { return Ok(None) };
        let (name, value) = auth.header(key.expose());
        let mut value = HeaderValue::try_from(value).map_err(|_| TransportError::BadKey)?;
        // The libraries then neither print the value nor store it in the compression table of HTTP/2.
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

fn invalid(error: &dyn Error) -> TransportError {
    TransportError::Connect { message: root_cause(error), kind: None }
}

fn wire_reply(status: StatusCode, headers: &HeaderMap, body: BodyStream) -> WireReply {
    let headers = REPLY_HEADERS
        .into_iter()
        .filter_map(|name| Some((name, headers.get(name)?.to_str().ok()?.to_owned())));
    WireReply { status: status.as_u16(), headers: headers.collect(), body }
}

impl Transport for Client {
    fn send<'a>(&'a self, request: &'a WireRequest) -> SendFuture<'a> {
        Box::pin(async move {
            if let Some(direct) = &self.direct {
                let (parts, body) = direct.send(self.direct_request(request)?).await?.into_parts();
                return Ok(wire_reply(parts.status, &parts.headers, Box::pin(body)));
            }
            let http = self.http()?;
            let reply =
                http.execute(self.request(http, request)?).await.map_err(|error| transport_error(&error))?;
            let status = reply.status();
            let headers = reply.headers().clone();
            let body = reply.bytes_stream().map_err(|error| TransportError::Broken(root_cause(&error)));
            Ok(wire_reply(status, &headers, Box::pin(body)))
        })
    }
}

fn transport_error(error: &reqwest::Error) -> TransportError {
    let message = root_cause(error);
    if error.is_connect() || error.is_builder() {
        TransportError::Connect { message, kind: ConnectErrorKind::find(error) }
    } else {
        TransportError::Broken(message)
    }
}

/// Returns whether a host is this machine, which is called directly even if a proxy is set.
pub(super) fn is_local_host(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

// Requests to a URL of the operator that call no model.

/// A request that calls no model.
#[derive(Debug, Clone, Default)]
pub struct PlainRequest {
    /// The method: `GET`, `POST`.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A complete response.
#[derive(Debug, Clone, Default)]
pub struct PlainResponse {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends requests to a URL that the operator set. Redirects are not followed.
#[derive(Debug, Clone)]
pub struct PlainClient {
    http: reqwest::Client,
    max_bytes: usize,
}

impl PlainClient {
    /// Creates a client for a server, with a time limit for each request and a limit for the bytes of a response. This
    /// machine is called directly, even if a proxy is set.
    ///
    /// # Errors
    /// If the URL is not valid, or the certificates of the system cannot be loaded.
    #[expect(clippy::disallowed_methods, reason = "its requests go to URLs of the operator")]
    pub fn new(base_url: &str, timeout: Duration, max_bytes: usize) -> Result<Self, String> {
        let url = reqwest::Url::parse(base_url).map_err(|error| format!("not a URL: {error}"))?;
        install_crypto();
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never());
        if url.host_str().is_some_and(is_local_host) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]); // loading certificates takes longer than a request
        }
        let http = builder.build().map_err(|error| root_cause(&error))?;
        Ok(Self { http, max_bytes })
    }

    /// Sends a request, and reads the response to its end.
    ///
    /// # Errors
    /// If there is no complete response within the limits, with the reason.
    pub async fn send(&self, request: &PlainRequest) -> Result<PlainResponse, String> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut builder = self.http.request(method, &request.url).body(request.body.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let response = builder.send().await.map_err(|error| root_cause(&error))?;
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let headers = headers.collect();
        let mut chunks = response.bytes_stream();
        let mut body = Vec::new();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| root_cause(&error))? {
            let chunk: Bytes = chunk;
            if body.len() + chunk.len() > self.max_bytes {
                return Err(format!("the response has more than {} bytes", self.max_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(PlainResponse { status, headers, body })
    }
}

#[cfg(test)]
mod tests {
    use cog_testkit::{Mock, Reply};

    use super::*;

    #[tokio::test]
    async fn redirect_is_not_followed() {
        for status in [301, 302, 303, 307, 308] {
            let other = Mock::start([Reply::text("{}")]);
            let url = format!("{}/v1/chat/completions", other.url());
            let first = Mock::start([Reply::raw("").status(status).header("location", url)]);
            let key = Some((Auth::Bearer, Secret::new("sk-canary")));
            let client = Client::new(&first.url(), key, Duration::from_secs(10));
            let request = client.http().unwrap().post(format!("{}/v1/chat/completions", first.url()));
            let (name, value) = client.key_header().unwrap().unwrap();
            let response = request.header(name, value).send().await.unwrap();
            assert_eq!((response.status().as_u16(), first.request_count()), (status, 1));
            assert_eq!(other.request_count(), 0, "{status}");
        }
    }

    #[test]
    fn recognizes_names_of_this_machine() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["localhost.evil.org", "10.0.0.1", "example.org", "[::2]"] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
