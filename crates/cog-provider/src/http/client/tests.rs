use std::sync::atomic::{AtomicUsize, Ordering};

use cog_testkit::{Mock, Reply};
use futures_util::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

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

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";

const OPEN: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";

/// A server that sends these bytes in reply to each request.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// Reports each connection that its client has closed.
    closed: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// Starts a server that closes each connection after `replies` replies.
    async fn start(reply: &'static str, replies: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (report, closed) = mpsc::unbounded_channel();
        let accepted = Arc::clone(&connections);
        spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                let report = report.clone();
                spawn(async move {
                    let mut request = [0; 4096];
                    for _ in 0..replies {
                        if stream.read(&mut request).await.unwrap_or(0) == 0 {
                            let _ = report.send(());
                            return;
                        }
                        stream.write_all(reply.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Self { port, connections, closed }
    }

    fn direct(&self) -> Direct {
        Direct::new("127.0.0.1", self.port, Duration::from_secs(5))
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

#[expect(clippy::disallowed_methods, reason = "a server in a test")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

fn post() -> Request<Full<Bytes>> {
    let request = Request::post("/").header("host", "localhost");
    request.body(Full::new(Bytes::from_static(b"{}"))).unwrap()
}

async fn text(direct: &Direct) -> String {
    let mut body = direct.send(post()).await.unwrap().into_body();
    let mut text = Vec::new();
    while let Some(bytes) = body.next().await {
        text.extend_from_slice(&bytes.unwrap());
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn reuses_connection_after_complete_body() {
    let server = Server::start(CHUNKED, usize::MAX).await;
    let direct = server.direct();
    for _ in 0..3 {
        assert_eq!(text(&direct).await, "onetwo");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn reuses_connection_if_only_the_end_of_the_body_is_missing() {
    let server = Server::start(CHUNKED, usize::MAX).await;
    let direct = server.direct();
    for _ in 0..3 {
        let mut body = direct.send(post()).await.unwrap().into_body();
        assert_eq!(body.next().await.unwrap().unwrap(), "one");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn dropping_a_body_closes_the_connection() {
    let mut server = Server::start(OPEN, usize::MAX).await;
    let direct = server.direct();
    let mut body = direct.send(post()).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "one");
    drop(body);
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn replaces_connection_that_the_server_closed() {
    let server = Server::start(CHUNKED, 1).await;
    let direct = server.direct();
    assert_eq!(text(&direct).await, "onetwo");
    // The reader of the pool sees the end once the system has reported it.
    while direct.pool.lock().iter_mut().any(|(_, connection)| connection.is_idle()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(text(&direct).await, "onetwo");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn interrupted_body_is_an_error() {
    let server = Server::start(OPEN, 1).await;
    let mut body = server.direct().send(post()).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "one");
    assert!(matches!(body.next().await, Some(Err(TransportError::Broken(_)))));
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn refused_connection_is_a_connect_error() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let refused = Direct::new("localhost", free, Duration::from_secs(5)).send(post()).await;
    assert!(matches!(refused.err(), Some(TransportError::Connect { .. })));
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let server = Server::start(CHUNKED, usize::MAX).await;
    let direct = server.direct();
    let mut open = Vec::new();
    for _ in 0..MAX_IDLE + 3 {
        open.push(direct.send(post()).await.unwrap().into_body());
    }
    drop(open);
    assert_eq!(direct.pool.lock().len(), MAX_IDLE);
}
