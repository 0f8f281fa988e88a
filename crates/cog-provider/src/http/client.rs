//! The HTTP client for URLs that the operator configured.

use std::{
    collections::VecDeque,
    error::Error,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use cog_spec::Secret;
use futures_core::Stream;
use futures_util::TryStreamExt as _;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Body as _, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use reqwest::{
    Method, StatusCode, Url,
    header::{self, HeaderMap, HeaderValue},
    redirect,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{
    error::root_cause,
    proxy::{NamedProxy, is_local},
};
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
        let is_local = is_local(base_url);
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
        if is_local(base_url) {
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
        let response = builder.send().await.map_err(|error| failed_to_send(&error, &request.url))?;
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

/// Returns the cause, with the proxy if there is no connection.
fn failed_to_send(error: &reqwest::Error, url: &str) -> String {
    let proxy = NamedProxy::of(url).filter(|_| error.is_connect());
    let cause = root_cause(error);
    proxy.map_or_else(|| cause.clone(), |proxy| format!("no connection through {proxy}: {cause}"))
}

// Plain HTTP/1.1 to this machine, with each connection read in the task of its call.
//
// The client for all other URLs runs one task per connection, which passes on each body chunk separately. That costs
// two wakeups per event of a reply; this client has none. Local servers need neither TLS, HTTP/2 nor a proxy.

/// How long an idle connection is retained.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);
/// The maximum number of idle connections.
const MAX_IDLE: usize = 512;
/// The number of chunks read to find the end of a body that is no longer needed.
const MAX_DRAINED: usize = 16;

/// A client for one server on this machine.
pub(super) struct Direct {
    host: String,
    port: u16,
    connect_timeout: Duration,
    pool: Arc<Pool>,
}

/// The idle connections, most recently used last.
#[derive(Default)]
struct Pool(Mutex<VecDeque<(Instant, Connection)>>);

/// A connection. It makes progress only while it is polled.
struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
    is_open: bool,
}

/// The body of a reply. Its connection returns to the pool after the end of the body, and is closed if dropped
/// earlier.
pub(super) struct Body {
    body: Incoming,
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl Direct {
    pub(super) fn new(host: &str, port: u16, connect_timeout: Duration) -> Self {
        let host = host.trim_matches(['[', ']']).to_owned();
        Self { host, port, connect_timeout, pool: Arc::default() }
    }

    /// Sends a request, over a new connection if none is idle or the server has just closed it.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, TransportError> {
        loop {
            let pooled = self.pool.take();
            let is_new = pooled.is_none();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => self.open().await?,
            };
            match connection.send(request).await {
                Ok(reply) => {
                    let pool = Arc::clone(&self.pool);
                    return Ok(reply.map(|body| Body { body, connection: Some(connection), pool }));
                }
                // A server closes an idle connection at any time. A request that was not written can be sent again; one
                // that was may have been executed.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(TransportError::Broken(root_cause(error.error()))),
                },
            }
        }
    }

    async fn open(&self) -> Result<Connection, TransportError> {
        let connected =
            timeout(self.connect_timeout, TcpStream::connect((self.host.as_str(), self.port))).await;
        let stream =
            connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(connect_error)?;
        // Without it the last packet of a request waits for the acknowledgement of the one before, up to 40 ms.
        stream.set_nodelay(true).map_err(connect_error)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| TransportError::Broken(root_cause(&error)))?;
        Ok(Connection { sender, driver: Box::pin(driver), is_open: true })
    }
}

fn connect_error(error: io::Error) -> TransportError {
    TransportError::Connect { message: error.to_string(), kind: None }
}

impl Pool {
    /// Takes an idle connection that is still open.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        while let Some((since, mut connection)) = idle.pop_back() {
            if since.elapsed() < MAX_IDLE_TIME && connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Returns a connection to the pool.
    fn put(&self, mut connection: Connection) {
        if !connection.is_idle() {
            return;
        }
        let mut idle = self.lock();
        while idle.len() >= MAX_IDLE || idle.front().is_some_and(|(since, _)| since.elapsed() > MAX_IDLE_TIME)
        {
            idle.pop_front();
        }
        idle.push_back((Instant::now(), connection));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Connection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::client::conn::TrySendError<Request<Full<Bytes>>>> {
        let mut reply = pin!(self.sender.try_send_request(request));
        let driver = &mut self.driver;
        let is_open = &mut self.is_open;
        // The driver first: it writes the request and reads the reply that the second future waits for.
        poll_fn(|context| {
            *is_open = *is_open && driver.as_mut().poll(context).is_pending();
            reply.as_mut().poll(context)
        })
        .await
    }

    /// Performs the reads and writes that are possible now.
    fn drive(&mut self, context: &mut Context<'_>) {
        self.is_open = self.is_open && self.driver.as_mut().poll(context).is_pending();
    }

    /// Returns whether the connection is ready for a request.
    fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.is_open && self.sender.is_ready()
    }
}

impl Body {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let mut has_driven = false;
        loop {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Some(Ok(data))),
                    Err(_trailers) => {}
                },
                Poll::Ready(Some(Err(error))) => {
                    self.connection = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => {
                    self.connection.take().into_iter().for_each(|connection| self.pool.put(connection));
                    return Poll::Ready(None);
                }
                // Driving the connection may have filled the body, so it is polled once more before this task waits.
                Poll::Pending if has_driven => return Poll::Pending,
                Poll::Pending => {
                    connection.drive(context);
                    has_driven = true;
                }
            }
        }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let data = self.poll_data(context);
        data.map(|data| data.map(|data| data.map_err(|error| TransportError::Broken(root_cause(&error)))))
    }
}

impl Drop for Body {
    /// Drains the body. After the last event usually only the end of the body is missing, and it has already arrived.
    fn drop(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MAX_DRAINED {
            if !matches!(self.poll_data(&mut context), Poll::Ready(Some(Ok(_)))) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
