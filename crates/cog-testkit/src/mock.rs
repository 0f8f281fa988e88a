//! A local server that replies like the vendors.

use std::{
    collections::VecDeque,
    io::{Error, ErrorKind},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, DefaultBodyLimit, State},
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
    serve::ListenerExt as _,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
};

use crate::{Batches, Reply, batches, forms::Forms, limits, wire::Wire};

/// How many connections may wait until they are accepted.
const BACKLOG: u32 = 4096;

/// A server on 127.0.0.1 that implements every wire form at its own path, and stores the requests.
///
/// It runs in its own thread, so that tests need no async runtime. Dropping it stops it. Replies are sent in order, and
/// the last one repeats.
pub struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The HTTP method, `POST`.
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The headers; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
    /// The client's socket address; equal for requests over the same connection.
    pub peer: SocketAddr,
}

impl Received {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The state that the server and the test share.
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Received>>,
    forgets: AtomicBool,
    interrupted: AtomicUsize,
    batches: Option<Batches>,
    /// Counts the input tokens of a request.
    count: OnceLock<fn(&Value) -> u64>,
    /// The chat template of llama.cpp's model.
    template: OnceLock<&'static str>,
    /// Translates the envelopes of replies.
    forms: OnceLock<Forms>,
}

impl Mock {
    /// Starts a server with these replies.
    ///
    /// # Panics
    /// Panics if no port is available.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::try_start(replies).unwrap_or_else(|error| unreachable!("no port for the mock: {error}"))
    }

    /// Starts a server with these replies.
    ///
    /// # Errors
    /// Fails if no port is available.
    pub fn try_start(replies: impl IntoIterator<Item = Reply>) -> std::io::Result<Self> {
        Self::try_start_with(0, replies, None)
    }

    /// Starts a server at this port with these replies. Port 0 is any free port.
    ///
    /// # Errors
    /// Fails if the port is not available.
    pub fn try_start_at(port: u16, replies: impl IntoIterator<Item = Reply>) -> std::io::Result<Self> {
        Self::try_start_with(port, replies, None)
    }

    /// Starts a server with these replies, which also answer the entries of batch jobs.
    ///
    /// # Errors
    /// Fails if no port is available.
    pub fn with_batches(replies: impl IntoIterator<Item = Reply>, batches: Batches) -> std::io::Result<Self> {
        Self::try_start_with(0, replies, Some(batches))
    }

    fn try_start_with(
        port: u16,
        replies: impl IntoIterator<Item = Reply>,
        batches: Option<Batches>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
            socket.listen(BACKLOG)?
        };
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            requests: Mutex::default(),
            forgets: AtomicBool::new(false),
            interrupted: AtomicUsize::new(0),
            batches,
            count: OnceLock::new(),
            template: OnceLock::new(),
            forms: OnceLock::new(),
        });
        let (shutdown, stopped) = oneshot::channel();
        let state = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = serve(listener, state) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, shared, shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// Does not store the requests, for benchmarks: what they measure is not the memory of the mock.
    #[must_use]
    pub fn forgetting(self) -> Self {
        self.shared.forgets.store(true, Ordering::Relaxed);
        self
    }

    /// Sets how the input tokens of a request are counted, instead of taking the counts of its reply.
    #[must_use]
    pub fn counting(self, count: fn(&Value) -> u64) -> Self {
        self.shared.count.get_or_init(|| count);
        self
    }

    /// Sets the chat template of the model, which llama.cpp tells at `/props`.
    #[must_use]
    pub fn with_template(self, template: &'static str) -> Self {
        self.shared.template.get_or_init(|| template);
        self
    }

    /// Replies in the form that a request asks for: an envelope becomes its data or its error where the request asks for the data
    /// alone, and a rationale that it did not ask for is the reply to the request that asks for it.
    #[must_use]
    pub fn in_requested_form(self) -> Self {
        self.shared.forms.get_or_init(Forms::default);
        self
    }

    /// Replaces the replies, and forgets the requests.
    pub fn reset(&self, replies: impl IntoIterator<Item = Reply>) {
        *lock(&self.shared.replies) = replies.into_iter().collect();
        lock(&self.shared.requests).clear();
    }

    /// Returns the URL without a path, `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL for clients of this wire form.
    pub fn base_url(&self, wire: Wire) -> String {
        format!("{}{}", self.url(), wire.base_path())
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        lock(&self.shared.requests).len()
    }

    /// Returns the number of replies that the client interrupted.
    pub fn interrupted(&self) -> usize {
        self.shared.interrupted.load(Ordering::SeqCst)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            let _ = shutdown.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Returns the reply to a request, in the form that it asks for.
    fn reply_to(&self, request: &Value) -> Reply {
        let Some(forms) = self.forms.get() else { return self.next(request) };
        forms.explanation(request).unwrap_or_else(|| forms.translated(request, self.next(request)))
    }

    /// Returns the reply for requests of this body, otherwise the next one of those for any request. The last one repeats.
    fn next(&self, body: &Value) -> Reply {
        let mut replies = lock(&self.replies);
        let body = replies.iter().any(|reply| !reply.when.is_empty()).then(|| body.to_string());
        if let Some(body) = body
            && let Some(reply) = replies.iter().find(|reply| reply.is_for(&body))
        {
            return reply.clone();
        }
        let mut others = replies.iter().enumerate().filter(|(_, reply)| reply.when.is_empty());
        let next = match (others.next().map(|(position, _)| position), others.next().is_some()) {
            (Some(position), true) => replies.remove(position),
            (Some(position), false) => replies.get(position).cloned(),
            (None, _) => None,
        };
        next.unwrap_or_else(|| Reply::error(500, "the mock has no reply"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<Shared>) -> std::io::Result<()> {
    // Without this, each small part of a reply waits 40 ms for the client.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().fallback(handle).layer(DefaultBodyLimit::disable()).with_state(state);
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    // A question about the server is no request to the model.
    if method == Method::GET && uri.path() == "/props" {
        return match shared.template.get() {
            Some(template) => {
                let body = json!({ "chat_template": template }).to_string();
                respond(200, "application/json", Body::from(body), &[])
            }
            None => respond(404, "text/plain", Body::from("404 page not found"), &[]),
        };
    }
    let received = Received {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        peer,
    };
    let request = received.body.clone();
    if !shared.forgets.load(Ordering::Relaxed) {
        lock(&shared.requests).push(received);
    }
    if let Some(response) = batch_reply(&shared, &method, &uri, &body, &request).await {
        return response;
    }
    if method == Method::GET
        && let Some(body) = information(uri.path(), &headers)
    {
        return respond(200, "application/json", Body::from(body.to_string()), &[]);
    }
    let mut reply = shared.reply_to(&request);
    if let Some(count) = shared.count.get() {
        reply.usage.0 = count(&request);
    }
    // Even a timer of zero length would yield, and a client that disconnects meanwhile would not be counted.
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    match Wire::from_path(uri.path()) {
        Some(wire) => wire_reply(&shared, wire, &uri, &request, reply),
        None => respond(404, "text/plain", Body::from("404 page not found"), &[]),
    }
}

/// Answers a request to a batch interface.
async fn batch_reply(
    shared: &Shared,
    method: &Method,
    uri: &Uri,
    bytes: &[u8],
    body: &Value,
) -> Option<Response<Body>> {
    let settings = shared.batches.as_ref()?;
    let query = uri.query().unwrap_or_default();
    let request = batches::Request { method: method.as_str(), path: uri.path(), query, bytes, body };
    let (step, status, body) = batches::respond(settings, &request, &mut |entry| shared.next(entry))?;
    if settings.holds == Some(step) {
        std::future::pending::<()>().await;
    }
    Some(respond(status, "application/json", Body::from(body), &batches::headers(&request)))
}

/// Returns the list of models, or the version of Ollama.
fn information(path: &str, headers: &HeaderMap) -> Option<Value> {
    let wire = Wire::of_models(path, headers.contains_key("anthropic-version"));
    if path.ends_with("/api/version") {
        return Some(json!({ "version": "0.0.0-mock" }));
    }
    wire.map(Wire::models)
}

fn wire_reply(shared: &Arc<Shared>, wire: Wire, uri: &Uri, request: &Value, reply: Reply) -> Response<Body> {
    if let Some(message) = limits::refusal(wire, request) {
        return respond(400, "application/json", Body::from(wire.error_body(400, &message).to_string()), &[]);
    }
    let (kind, chunks) = match (&reply.raw, &reply.error) {
        (Some(raw), _) => (wire.stream_type(), vec![raw.clone()]),
        (None, Some(message)) if reply.status >= 300 => {
            ("application/json", vec![wire.error_body(reply.status, message).to_string()])
        }
        _ if wire.wants_stream(uri.path(), request) => (wire.stream_type(), wire.stream(&reply)),
        _ => ("application/json", vec![wire.complete(&reply).to_string()]),
    };
    let status = reply.status;
    let headers = reply.headers.clone();
    respond(status, kind, body(chunks, reply, Arc::clone(shared)), &headers)
}

fn respond(status: u16, kind: &str, body: Body, headers: &[(String, String)]) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).unwrap_or_default());
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let builder = if has_type { builder } else { builder.header(header::CONTENT_TYPE, kind) };
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
    builder.body(body).unwrap_or_default()
}

fn text(value: &axum::http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Creates the body of a reply, which may be interrupted or stay open.
fn body(chunks: Vec<String>, reply: Reply, shared: Arc<Shared>) -> Body {
    let packets = packets(chunks, &reply);
    let interrupts = reply.interrupt_after.is_some();
    let sending = Sending { packets, pause: reply.pause, interrupts, hangs: reply.hangs, shared, sent: 0 };
    Body::from_stream(stream::unfold(sending, Sending::next))
}

/// Returns the packets of a body: truncated, and split again if the reply sets their size.
fn packets(chunks: Vec<String>, reply: &Reply) -> VecDeque<Bytes> {
    let chunks: Vec<Vec<u8>> = chunks.into_iter().map(String::into_bytes).collect();
    let chunks = match reply.packet_size {
        Some(size) => chunks.concat().chunks(size).map(<[u8]>::to_vec).collect(),
        None => chunks,
    };
    let mut left = reply.interrupt_after.unwrap_or(usize::MAX);
    let mut packets = VecDeque::new();
    for mut chunk in chunks {
        chunk.truncate(left);
        left -= chunk.len();
        if !chunk.is_empty() {
            packets.push_back(Bytes::from(chunk));
        }
    }
    packets
}

/// A body that is being sent.
struct Sending {
    packets: VecDeque<Bytes>,
    pause: Duration,
    interrupts: bool,
    hangs: bool,
    shared: Arc<Shared>,
    sent: usize,
}

impl Sending {
    async fn next(mut self) -> Option<(Result<Bytes, Error>, Self)> {
        if let Some(packet) = self.packets.pop_front() {
            if self.sent > 0 {
                self.wait().await;
            }
            self.sent += 1;
            return Some((Ok(packet), self));
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if std::mem::take(&mut self.interrupts) {
            // The packets before the interruption must be sent first.
            tokio::task::yield_now().await;
            return Some((Err(Error::from(ErrorKind::ConnectionAborted)), self));
        }
        None
    }
}

impl Sending {
    /// Lets the last packet be sent. A timer of zero length would still take a millisecond.
    async fn wait(&self) {
        if self.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.pause).await;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.hangs || !self.packets.is_empty() {
            self.shared.interrupted.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests;
