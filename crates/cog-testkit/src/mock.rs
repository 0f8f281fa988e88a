//! A server on this machine that answers as vendors do.

mod body;

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, State},
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    Reply,
    wire::{Wire, models},
};

/// A server on 127.0.0.1 that speaks all wire forms, each at its own path, and keeps what it was asked.
///
/// It runs in a thread of its own, so that tests need no runtime; dropping it ends it. Replies are given
/// in order, and the last one again and again.
pub struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A request that arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// `POST`.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null where it is none.
    pub body: Value,
    /// The client's end of the connection; equal for requests over the same one.
    pub peer: SocketAddr,
}

impl Received {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the server and the test both hold.
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Received>>,
    broken_off: AtomicUsize,
}

impl Mock {
    /// Starts a server with these replies.
    ///
    /// # Panics
    /// If no port of this machine can be had: a test cannot go on without.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::try_start(replies).unwrap_or_else(|error| unreachable!("no port for the mock: {error}"))
    }

    /// Starts a server with these replies.
    ///
    /// # Errors
    /// No port of this machine can be had.
    pub fn try_start(replies: impl IntoIterator<Item = Reply>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into_iter().collect()),
            requests: Mutex::default(),
            broken_off: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = serve(listener, state) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The address without a path, `http://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address to give to a client of this wire form.
    pub fn base_url(&self, wire: Wire) -> String {
        format!("{}{}", self.url(), wire.base_path())
    }

    /// What was asked so far, in order.
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.shared.requests).clone()
    }

    /// How many replies were broken off by the client.
    pub fn broken_off(&self) -> usize {
        self.shared.broken_off.load(Ordering::SeqCst)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The next reply; the last one stays.
    fn next(&self) -> Reply {
        let mut replies = lock(&self.replies);
        let next = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        next.unwrap_or_else(|| Reply::error(500, "the mock has no reply"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<Shared>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = Router::new().fallback(answer).with_state(state);
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let received = Received {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.iter().map(|(name, value)| (name.to_string(), shown(value))).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        peer,
    };
    let asked = received.body.clone();
    lock(&shared.requests).push(received);
    if method == Method::GET
        && let Some(list) = models(uri.path())
    {
        return respond(200, "application/json", Body::from(list.to_string()), &[]);
    }
    let reply = shared.next();
    // Not even for no time at all: a client that left meanwhile would not be counted.
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    match Wire::at(uri.path()) {
        Some(wire) => wire_answer(&shared, wire, &uri, &asked, reply),
        None => respond(404, "text/plain", Body::from("404 page not found"), &[]),
    }
}

fn wire_answer(shared: &Arc<Shared>, wire: Wire, uri: &Uri, asked: &Value, reply: Reply) -> Response<Body> {
    let (kind, pieces) = match (&reply.raw, &reply.fault) {
        (Some(raw), _) => (wire.stream_type(), vec![raw.clone()]),
        (None, Some(message)) if reply.status >= 300 => {
            ("application/json", vec![wire.failure(reply.status, message).to_string()])
        }
        _ if wire.wants_stream(uri.path(), asked) => (wire.stream_type(), wire.stream(&reply)),
        _ => ("application/json", vec![wire.whole(&reply).to_string()]),
    };
    let (status, headers) = (reply.status, reply.headers.clone());
    respond(status, kind, body::body(pieces, reply, Arc::clone(shared)), &headers)
}

fn respond(status: u16, kind: &str, body: Body, headers: &[(String, String)]) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).unwrap_or_default());
    let own = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let builder = if own { builder } else { builder.header(header::CONTENT_TYPE, kind) };
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
    builder.body(body).unwrap_or_default()
}

fn shown(value: &axum::http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests;
