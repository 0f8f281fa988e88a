//! Connections over real sockets: each limit exactly, and exceeded by one.

use std::{convert::Infallible, net::Ipv4Addr};

use axum::{
    extract::{WebSocketUpgrade, ws::Message},
    middleware::from_fn_with_state,
    routing::{any, get, post},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
};

use cog_run::{BudgetLimits, sessions::SessionState};

use super::*;
use crate::{
    guard::{self, Access, Bodies, Client, Drain, Guards, Hosts, Origins, Rates, Slots},
    metrics::{Live, Metrics},
    vendor_api,
};

/// The timeout of a hanging test. No step takes a tenth of it.
const LONG: Duration = Duration::from_secs(30);

/// A server with a few test routes. Dropping it stops the server.
struct Running {
    address: SocketAddr,
    guard: Guard,
    shutdown: oneshot::Sender<()>,
    serving: JoinSet<()>,
    stopped: oneshot::Receiver<()>,
}

fn small() -> ServerSettings {
    ServerSettings {
        max_header_bytes: 16 * 1024,
        header_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        shutdown_timeout: Duration::from_secs(20),
        ..ServerSettings::default()
    }
}

fn guard() -> Guard {
    let drain = Drain::default();
    Guard::from(Guards {
        hosts: Hosts::new(Ipv4Addr::LOCALHOST.into(), &[]),
        origins: Origins::new(&[]).unwrap(),
        access: Access::Open,
        rates: Rates::new(0, 1),
        messages: Rates::new(0, 1),
        feedback: Rates::new(0, 1),
        slots: Slots::new(100, 100, &drain),
        budgets: Arc::new(ClientBudgets::new(BudgetLimits::default(), Duration::from_secs(60))),
        bodies: Bodies::new(1024, 64 << 20, Duration::from_millis(300)),
        drain,
        metrics: Metrics::new(),
        is_public: |_| false,
        refusal: vendor_api::refusal,
        failure: vendor_api::failure,
    })
}

fn router(guard: &Guard) -> Router {
    let flood = || async {
        let chunk = Bytes::from_static(&[b'x'; 64 * 1024]);
        Body::from_stream(stream::repeat(chunk).map(Ok::<_, Infallible>))
    };
    let socket = |upgrade: WebSocketUpgrade| async {
        upgrade.on_upgrade(|mut socket| async move {
            let message = Message::Binary(Bytes::from_static(&[b'x'; 64 * 1024]));
            while socket.send(message.clone()).await.is_ok() {}
        })
    };
    let hang = || async { Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()) };
    let shared = guard.clone();
    let echo = move |body: Body| {
        let guard = shared.clone();
        async move { guard.bodies.read(&Client::Others, body).await.map(|(bytes, _)| bytes) }
    };
    Router::new()
        .route("/", get(|| async { "here" }))
        .route("/flood", get(flood))
        .route("/hang", get(hang))
        .route("/socket", any(socket))
        .route("/echo", post(echo))
        .layer(from_fn_with_state(guard.clone(), guard::enter))
}

async fn start(settings: ServerSettings) -> Running {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let guard = guard();
    let router = router(&guard);
    let served = guard.clone();
    let (shutdown, signal) = oneshot::channel::<()>();
    let (stop, stopped) = oneshot::channel();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let shutdown = async { drop(signal.await) };
        let stop = || {
            let _ = stop.send(());
        };
        serve_until(listener, router, served, &settings, shutdown, stop).await;
    });
    Running { address, guard, shutdown, serving, stopped }
}

impl Running {
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, path: &str) -> TcpStream {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await
    }

    /// Sends a request and returns everything that the server sends until the connection closes.
    async fn receive(&self, text: &str) -> String {
        rest(&mut self.send(text).await).await
    }

    fn count(&self, line: &str) -> bool {
        let live = Live {
            streams: 0,
            providers: Vec::new(),
            sessions: SessionState::ALL.map(|state| (state, 0)),
            sessions_not_on_disk: 0,
        };
        self.guard.metrics.text(&live).lines().any(|found| found == line)
    }
}

/// Reads the rest until the connection is closed.
async fn rest(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    // A reset closes the connection too.
    let _ = timeout(LONG, stream.read_to_end(&mut received)).await.expect("the server hangs");
    String::from_utf8_lossy(&received).into_owned()
}

/// Reads until this text has arrived.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut received = String::new();
    while !received.contains(end) {
        let mut chunk = [0; 4096];
        let read = timeout(LONG, stream.read(&mut chunk)).await.expect("the server hangs").unwrap();
        assert_ne!(read, 0, "closed after {received:?}");
        received.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
    }
    received
}

/// Builds a request whose headers have exactly this many bytes.
fn head(bytes: usize) -> String {
    let begin = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: ";
    let end = "\r\n\r\n";
    format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len()))
}

#[tokio::test]
async fn headers_up_to_the_limit_are_accepted() {
    let server = start(small()).await;
    let received = server.receive(&head(16 * 1024 - 1)).await;
    assert!(received.starts_with("HTTP/1.1 200"), "{received}");
    for bytes in [16 * 1024 + 1, 20 * 1024] {
        let received = server.receive(&head(bytes)).await;
        assert!(received.starts_with("HTTP/1.1 431"), "{received}");
    }
}

#[tokio::test]
async fn at_most_100_headers_are_accepted() {
    let server = start(small()).await;
    let lines = |count: usize| {
        let more: String = (2..count).map(|number| format!("X-{number}: 1\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n")
    };
    assert!(server.receive(&lines(100)).await.starts_with("HTTP/1.1 200"));
    assert!(server.receive(&lines(101)).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn incomplete_headers_time_out() {
    let server = start(small()).await;
    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        assert!(!server.receive(begun).await.contains("200"), "{begun}");
    }
}

#[tokio::test]
async fn slow_headers_time_out() {
    let server = start(small()).await;
    let (mut reading, mut writing) = server.send("GET / HTTP/1.1\r\nX: ").await.into_split();
    let drip = async {
        while writing.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let mut received = Vec::new();
    let closed = async { drop(reading.read_to_end(&mut received).await) };
    timeout(LONG, async {
        tokio::select! { () = drip => {}, () = closed => {} }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn idle_http_connection_is_closed() {
    let server = start(small()).await;
    let mut stream = server.get("/").await;
    let received = rest(&mut stream).await;
    assert!(received.starts_with("HTTP/1.1 200"), "{received}");
}

#[tokio::test]
async fn body_limit_is_exact() {
    let server = start(small()).await;
    let post = |head: String, body: &str| {
        format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n{body}")
    };
    let sized = |bytes: usize| post(format!("Content-Length: {bytes}"), &"x".repeat(bytes.min(2048)));
    let chunked = |bytes: usize| {
        post("Transfer-Encoding: chunked".into(), &format!("{bytes:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(bytes)))
    };
    for (request, status) in [
        (sized(0), "200"),
        (sized(1024), "200"),
        (sized(1025), "413"),
        (sized(1 << 40), "413"),
        (chunked(1024), "200"),
        (chunked(1025), "413"),
        (post("Content-Length: 10".into(), "x"), "408"),
    ] {
        let received = server.receive(&request).await;
        assert!(received.starts_with(&format!("HTTP/1.1 {status}")), "{received}");
    }
}

#[tokio::test]
async fn client_that_does_not_read_times_out() {
    let server = start(small()).await;
    let stream = server.get("/flood").await;
    let given_up = async {
        while !server.count("cog_write_timeouts_total 1") {
            sleep(Duration::from_millis(20)).await;
        }
        server.guard.drain.idle().await;
    };
    timeout(LONG, given_up).await.expect("the slow reader is still served");
    drop(stream);
}

/// Requests a WebSocket.
const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[tokio::test]
async fn websocket_that_does_not_read_times_out_and_frees_its_permit() {
    let server = start(ServerSettings { max_connections: 1, ..small() }).await;
    let mut socket = server.send(UPGRADE).await;
    let mut head = [0; 12];
    timeout(LONG, socket.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    let mut next = server.get("/").await;
    until(&mut next, "here").await;
    assert!(server.count("cog_write_timeouts_total 1"));
    drop(socket);
}

#[tokio::test]
async fn slow_reader_stays_connected() {
    let server = start(small()).await;
    let mut stream = server.get("/flood").await;
    let mut read = 0;
    while read < 16 << 20 {
        let mut chunk = vec![0; 1 << 20];
        read += timeout(LONG, stream.read(&mut chunk)).await.unwrap().unwrap();
    }
    assert!(server.count("cog_write_timeouts_total 0"));
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let server = start(ServerSettings { max_connections: 2, ..ServerSettings::default() }).await;
    let mut first = server.get("/").await;
    let mut second = server.get("/").await;
    until(&mut first, "here").await;
    until(&mut second, "here").await;
    let mut third = server.get("/").await;
    let waited = timeout(Duration::from_millis(200), third.read(&mut [0; 10])).await;
    assert!(waited.is_err(), "the third connection was served");
    drop(first);
    until(&mut third, "here").await;
}

#[tokio::test]
async fn idle_server_shuts_down_at_once() {
    let mut server = start(small()).await;
    let mut idle = server.get("/").await;
    until(&mut idle, "here").await;
    server.shutdown.send(()).unwrap();
    timeout(LONG, server.serving.join_next()).await.expect("the server hangs").unwrap().unwrap();
    server.stopped.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    assert_eq!(rest(&mut idle).await, "");
}

#[tokio::test]
async fn shutdown_waits_for_streams_and_closes_idle_connections() {
    let mut server = start(ServerSettings::default()).await;
    let mut open = server.get("/").await;
    until(&mut open, "here").await;
    let mut stream = server.get("/hang").await;
    until(&mut stream, "\r\n\r\n").await;
    server.shutdown.send(()).unwrap();
    assert_eq!(rest(&mut open).await, "");
    assert!(TcpStream::connect(server.address).await.is_err());
    assert!(server.stopped.try_recv().is_err(), "the stream was stopped before its time");
    drop(stream);
    timeout(LONG, server.serving.join_next()).await.expect("the server hangs").unwrap().unwrap();
}

#[tokio::test]
async fn requests_are_served_until_the_drain_delay_is_over() {
    let server = start(ServerSettings { drain_delay: LONG, ..ServerSettings::default() }).await;
    let mut open = server.get("/").await;
    until(&mut open, "here").await;
    server.shutdown.send(()).unwrap();
    server.guard.drain.announced.cancelled().await;
    open.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut new = TcpStream::connect(server.address).await.unwrap();
    new.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    for stream in [&mut open, &mut new] {
        let received = rest(stream).await;
        assert!(received.starts_with("HTTP/1.1 200") && received.ends_with("here"), "{received}");
        assert!(received.to_lowercase().contains("connection: close"), "{received}");
    }
    assert!(!server.guard.drain.begun.is_cancelled());
}

#[tokio::test]
async fn idle_connections_close_when_the_drain_delay_is_over() {
    let delay = Duration::from_millis(50);
    let mut server = start(ServerSettings { drain_delay: delay, ..ServerSettings::default() }).await;
    let mut idle = server.get("/").await;
    until(&mut idle, "here").await;
    server.shutdown.send(()).unwrap();
    assert_eq!(rest(&mut idle).await, "");
    timeout(LONG, server.serving.join_next()).await.expect("the server hangs").unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn streams_that_do_not_end_in_time_are_stopped() {
    let mut server =
        start(ServerSettings { shutdown_timeout: Duration::from_millis(50), ..ServerSettings::default() })
            .await;
    let mut stream = server.get("/hang").await;
    until(&mut stream, "\r\n\r\n").await;
    server.shutdown.send(()).unwrap();
    timeout(LONG, server.serving.join_next()).await.expect("the server hangs").unwrap().unwrap();
    server.stopped.await.unwrap();
    rest(&mut stream).await;
}

/// Nothing accepts these connections. Those that do not fit the queue would wait, and their clients time out.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "the limit of the system")]
fn burst_of_connections_fits_the_queue() {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let burst = most.trim().parse::<usize>().unwrap().min(2000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    for number in 1..=burst {
        let connected = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(20));
        assert!(connected.is_ok(), "{number} of {burst}: {}", connected.unwrap_err());
    }
}
