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
    time::Duration,
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
    world::{sse_request, whole_request},
};

/// The number of clients, each with an IP address of its own.
const CLIENTS: u8 = 64;
/// The size of a large body, just under the server's limit.
const LARGE: usize = 29 << 20;
/// The pause between two attacks of a client.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum time of one attack: all timeouts of the server are shorter.
const PATIENCE: Duration = Duration::from_secs(40);

/// The hostile clients, in a thread of their own.
pub(super) struct Crowd {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(&'static str, f64)>>,
}

impl Crowd {
    /// Starts the clients. They get only the time that the healthy ones leave.
    pub(super) fn start(server: SocketAddr) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            setpriority_process(None, 19).expect("a thread may lower its priority");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let attacks = attacks();
            let set = LocalSet::new();
            for (client, attack) in (1..=CLIENTS).zip(attacks.iter().cycle()) {
                set.spawn_local(besiege(Rc::clone(attack), server, Ipv4Addr::new(127, 0, 1, client)));
            }
            let over = async {
                while !ends.load(Ordering::Relaxed) {
                    sleep(PAUSE).await;
                }
            };
            set.block_on(&runtime, over);
            attacks.iter().map(|attack| (attack.name, count(attack.times.load(Ordering::Relaxed)))).collect()
        });
        Self { is_over, thread }
    }

    /// Stops the clients. Returns how often each attack reached the server.
    pub(super) fn stop(self) -> Vec<(&'static str, f64)> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn besiege(attack: Rc<Attack>, server: SocketAddr, from: Ipv4Addr) {
    loop {
        if let Ok(stream) = connect(server, from).await {
            attack.times.fetch_add(1, Ordering::Relaxed);
            // The server may close the connection at any time.
            let _ = timeout(PATIENCE, attack.kind.run(stream)).await;
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
struct Attack {
    name: &'static str,
    kind: Kind,
    times: AtomicUsize,
}

enum Kind {
    /// Opens a WebSocket, sends pings, and never reads.
    Pings,
    /// Sends a request and reads the answer.
    Request(Vec<u8>),
    /// Sends so much of a request, and nothing more.
    Half(Vec<u8>),
    /// Sends a request byte by byte.
    Bytes(Vec<u8>),
    /// Requests a stream and never reads.
    Unread(Vec<u8>),
}

fn attacks() -> Vec<Rc<Attack>> {
    let strings = (0..).map(|number| format!("\"f{number}\""));
    let strings: Vec<_> = strings.take(LARGE / 11).collect();
    let strings = large(&format!(r#"{{"input":{{"text":"x","focus":[{}]}}}}"#, strings.join(",")));
    let text = large(&format!(r#"{{"input":{{"text":"{}"}}}}"#, "x".repeat(LARGE)));
    let key = large(&format!(r#"{{"input":{{"text":"x","{}":1}}}}"#, "k".repeat(LARGE)));
    let option = large(&format!(r#"{{"input":{{"text":"x"}},"{}":1}}"#, "k".repeat(LARGE)));
    let half = text.get(..LARGE / 2).unwrap_or_default().to_vec();
    let attacks = [
        ("WebSocket pings without reading", Kind::Pings),
        ("29 MB of strings", Kind::Request(strings)),
        ("29 MB of text, sent to the model", Kind::Request(text)),
        ("29 MB of an unknown key in the input", Kind::Request(key)),
        ("29 MB of an unknown key beside the input", Kind::Request(option)),
        ("half of a request of 29 MB", Kind::Half(half)),
        ("a request byte by byte", Kind::Bytes(whole_request())),
        ("a stream of 1 MB without reading", Kind::Unread(sse_request("flood-65536"))),
    ];
    attacks.map(|(name, kind)| Rc::new(Attack { name, kind, times: AtomicUsize::new(0) })).into()
}

fn large(body: &str) -> Vec<u8> {
    http::post("/v1/modules/load/execute", "application/json", body)
}

impl Kind {
    fn run(&self, mut stream: TcpStream) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            match self {
                Self::Pings => pings(stream).await,
                Self::Request(request) => {
                    Connection::new(stream).ask(request, &mut Vec::new()).await.map(drop)
                }
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
