//! Clients that try to fill the memory of the server and to keep it from its work.

use std::{
    io::Result,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use futures_util::future::LocalBoxFuture;
use rustix::process::setpriority_process;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::LocalSet,
    time::{sleep, timeout},
};

use crate::{
    client::count,
    http::{self, Connection},
    world::{execute, sse_request, whole_request},
};

/// The number of clients for each attack, each with an IP address of its own.
const CLIENTS: usize = 8;
/// The size of a large body, just under the server's limit.
const LARGE: usize = 29 << 20;
/// The pause between two attacks of a client.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum time of one attack: all timeouts of the server are shorter.
const PATIENCE: Duration = Duration::from_secs(40);

/// The hostile clients, in a thread of their own.
pub(super) struct Crowd {
    is_over: Arc<AtomicBool>,
    times: Vec<(&'static str, Arc<AtomicUsize>)>,
    thread: JoinHandle<()>,
}

impl Crowd {
    /// Starts eight clients for each attack. They get only the time that the healthy ones leave.
    pub(super) fn start(server: SocketAddr, attacks: Vec<Attack>) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let times = attacks.iter().map(|attack| (attack.name, Arc::clone(&attack.times))).collect();
        let thread = std::thread::spawn(move || {
            setpriority_process(None, 19).expect("a thread may lower its priority");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let set = LocalSet::new();
            let attacks =
                attacks.into_iter().map(Rc::new).flat_map(|attack| std::iter::repeat_n(attack, CLIENTS));
            for (client, attack) in (1..).zip(attacks) {
                set.spawn_local(besiege(attack, server, Ipv4Addr::new(127, 0, 1, client)));
            }
            let over = async {
                while !ends.load(Ordering::Relaxed) {
                    sleep(PAUSE).await;
                }
            };
            set.block_on(&runtime, over);
        });
        Self { is_over, times, thread }
    }

    /// Waits until each attack has reached the server so often, at most for `limit`.
    pub(super) async fn wait(&self, times: usize, limit: Duration) {
        let end = Instant::now() + limit;
        while Instant::now() < end && self.times.iter().any(|(_, done)| done.load(Ordering::Relaxed) < times)
        {
            sleep(PAUSE).await;
        }
    }

    /// Stops the clients. Returns how often each attack reached the server.
    pub(super) fn stop(self) -> Vec<(&'static str, f64)> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.times.iter().map(|(name, times)| (*name, count(times.load(Ordering::Relaxed)))).collect()
    }
}

async fn besiege(attack: Rc<Attack>, server: SocketAddr, from: Ipv4Addr) {
    loop {
        if let Ok(stream) = connect(server, from).await {
            // The server may close the connection at any time.
            let _ = timeout(PATIENCE, attack.kind.run(stream, attack.times.fetch_add(1, Ordering::Relaxed)))
                .await;
        }
        sleep(PAUSE).await;
    }
}

async fn connect(server: SocketAddr, from: Ipv4Addr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.set_recv_buffer_size(4096)?;
    socket.connect(server).await
}

/// What some of the clients repeat.
pub(super) struct Attack {
    name: &'static str,
    kind: Kind,
    times: Arc<AtomicUsize>,
}

enum Kind {
    /// Opens a WebSocket, sends pings, and never reads.
    Pings,
    /// Sends a request and reads the answer.
    Request(Vec<u8>),
    /// Sends a request that no other one is like, and reads the answer.
    Different,
    /// Sends so much of a request, and nothing more.
    Half(Vec<u8>),
    /// Sends a request byte by byte.
    Bytes(Vec<u8>),
    /// Requests a stream and never reads.
    Unread(Vec<u8>),
}

/// Attacks on the memory of the server and the time of the others.
pub(super) fn on_resources() -> Vec<Attack> {
    let strings = (0..).map(|number| format!("\"f{number}\""));
    let strings: Vec<_> = strings.take(LARGE / 11).collect();
    let strings = format!(r#"{{"text":"x","focus":[{}]}}"#, strings.join(","));
    let text = large(&format!(r#"{{"input":{{"text":"{}"}}}}"#, "x".repeat(LARGE)));
    let key = large(&format!(r#"{{"input":{{"text":"x","{}":1}}}}"#, "k".repeat(LARGE)));
    let option = large(&format!(r#"{{"input":{{"text":"x"}},"{}":1}}"#, "k".repeat(LARGE)));
    let half = text.get(..LARGE / 2).unwrap_or_default().to_vec();
    let token = format!(r#""_meta":{{"progressToken":"{}"}},"#, "t".repeat(LARGE));
    named([
        ("WebSocket pings without reading", Kind::Pings),
        ("29 MB of strings", Kind::Request(large(&format!(r#"{{"input":{strings}}}"#)))),
        ("29 MB of text, sent to the model", Kind::Request(text)),
        ("29 MB of an unknown key in the input", Kind::Request(key)),
        ("29 MB of an unknown key beside the input", Kind::Request(option)),
        ("half of a request of 29 MB", Kind::Half(half)),
        ("a request byte by byte", Kind::Bytes(whole_request())),
        ("a stream of 1 MB without reading", Kind::Unread(sse_request("flood-65536"))),
        ("29 MB of strings over MCP", Kind::Request(call("", &strings))),
        ("a progress token of 29 MB over MCP", Kind::Request(call(&token, r#"{"text":"x"}"#))),
        ("a model that fails", Kind::Request(execute("load", "broken", ""))),
    ])
}

/// Attacks on what the server keeps for others: sessions, halted runs, and cached answers.
pub(super) fn on_state() -> Vec<Attack> {
    named([
        ("a stream", Kind::Request(sse_request("whole"))),
        ("a run that waits for a confirmation", Kind::Request(execute("agent", "tool", ""))),
        ("an answer to cache", Kind::Different),
    ])
}

fn named<const N: usize>(attacks: [(&'static str, Kind); N]) -> Vec<Attack> {
    attacks.map(|(name, kind)| Attack { name, kind, times: Arc::default() }).into()
}

/// A call of the module as a tool of MCP.
fn call(members: &str, arguments: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{members}"name":"load","arguments":{arguments}}}}}"#
    );
    http::post("/mcp", "application/json, text/event-stream", &body)
}

fn large(body: &str) -> Vec<u8> {
    http::post("/v1/modules/load/execute", "application/json", body)
}

impl Kind {
    /// Attacks for the time of this `number`.
    fn run(&self, mut stream: TcpStream, number: usize) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            match self {
                Self::Pings => pings(stream).await,
                Self::Request(request) => answered(stream, request).await,
                Self::Different => answered(stream, &execute("load", "whole", &number.to_string())).await,
                Self::Half(start) => {
                    stream.write_all(start).await?;
                    closed(stream).await
                }
                Self::Bytes(request) => {
                    for byte in request {
                        stream.write_all(&[*byte]).await?;
                        sleep(PAUSE).await;
                    }
                    closed(stream).await
                }
                Self::Unread(request) => {
                    stream.write_all(request).await?;
                    // The server writes until its timeout.
                    sleep(PATIENCE).await;
                    Ok(())
                }
            }
        })
    }
}

async fn answered(stream: TcpStream, request: &[u8]) -> Result<()> {
    Connection::new(stream).ask(request, &mut Vec::new()).await.map(drop)
}

async fn pings(mut stream: TcpStream) -> Result<()> {
    const UPGRADE: &[u8] = b"GET /v1/modules/load/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
        upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(UPGRADE).await?;
    // A ping of 125 bytes under a mask of zeros.
    let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let pings = ping.repeat(500);
    loop {
        stream.write_all(&pings).await?;
    }
}

/// Reads until the server closes the connection.
async fn closed(mut stream: TcpStream) -> Result<()> {
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
