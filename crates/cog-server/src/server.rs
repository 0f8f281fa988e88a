//! The server: from a listener to connections, their limits, and shutdown.

use std::{
    convert::Infallible,
    error::Error,
    future::Future,
    io,
    net::SocketAddr,
    path::PathBuf,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::ConnectInfo};
use cog_run::{CancelReason, ClientBudgets, Runtime, sessions::Sessions};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{
    MediaStore, Metrics, RunRecords, ServerSettings, SetupError, Workbench,
    broken::ModuleChecks,
    guard::{Bodies, Drain, Guard, Guards, Hosts, Rates, Slots},
    offload::Offload,
    routes::{self, pages},
    state::{App, Shared},
    vendor_api,
    workbench::Bench,
};

/// An HTTP server that runs modules.
pub struct Server {
    settings: ServerSettings,
    runtime: Runtime,
    sessions: Sessions,
    metrics: Metrics,
    media: MediaStore,
    budgets: Arc<ClientBudgets>,
    records: Option<Arc<dyn RunRecords>>,
    bench: Option<Bench>,
    only_mcp: bool,
}

impl Server {
    /// A server for the modules of this runtime.
    pub fn new(settings: ServerSettings, runtime: Runtime, sessions: Sessions) -> Self {
        let media = MediaStore::new(settings.uploads.clone(), None);
        let budgets = Arc::new(ClientBudgets::new(settings.client_budget, settings.client_budget_period));
        Self {
            settings,
            runtime,
            sessions,
            metrics: Metrics::new(),
            media,
            budgets,
            records: None,
            bench: None,
            only_mcp: false,
        }
    }

    /// Sets the metrics, which the runtime reports its runs to ([`cog_run::RuntimeBuilder::events`]).
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Sets the store of uploads and generated media, from which the runtime opens uploads.
    #[must_use]
    pub fn with_media(self, media: MediaStore) -> Self {
        Self { media, ..self }
    }

    /// Logs the runs of clients, and accepts labels for them.
    #[must_use]
    pub fn with_records(self, records: Arc<dyn RunRecords>) -> Self {
        Self { records: Some(records), ..self }
    }

    /// Serves the routes of the workbench, which run tests and read the log; with `can_edit`, they also write files of modules.
    ///
    /// It is for a person at their own machine: such a server must listen on loopback, or have tokens.
    #[must_use]
    pub fn with_workbench(self, workbench: Arc<dyn Workbench>, can_edit: bool) -> Self {
        Self { bench: Some(Bench { workbench, can_edit, writing: Arc::default() }), ..self }
    }

    /// Keeps what clients have spent in this file, so that it counts after a restart.
    ///
    /// # Errors
    /// The file exists and is not one of budgets.
    pub fn with_budget_file(self, file: PathBuf) -> io::Result<Self> {
        let ServerSettings { client_budget, client_budget_period, .. } = self.settings;
        let budgets = Arc::new(ClientBudgets::open(client_budget, client_budget_period, file)?);
        Ok(Self { budgets, ..self })
    }

    /// Serves only `/mcp`, `/health` and `/ready`.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn only_mcp(self) -> Self {
        Self { only_mcp: true, ..self }
    }

    /// Returns the routes with their checks, for a program with a listener of its own at this address. The requests must have
    /// the peer of their connection as an extension, an [`axum::extract::ConnectInfo`] of a [`SocketAddr`].
    ///
    /// # Errors
    /// The settings do not allow serving at this address.
    pub fn router(&self, address: SocketAddr) -> Result<Router, SetupError> {
        Ok(routes::build(self.app(address)?))
    }

    /// Serves until `shutdown` is ready, and then for [`ServerSettings::drain_delay`] with `/ready` at 503. After that, waits until
    /// running requests have ended, or stops them after [`ServerSettings::shutdown_timeout`].
    ///
    /// # Errors
    /// The settings do not allow serving at the address of the listener.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), SetupError> {
        let app = self.app(listener.local_addr()?)?;
        let router = routes::build(app.clone());
        let stop = || self.sessions.cancel_all(CancelReason::Shutdown);
        tokio::select! {
            () = serve_until(listener, router, app.guard.clone(), &self.settings, shutdown, stop) => {}
            never = save_each_second(&self.budgets) => match never {},
        }
        if let Err(error) = save(&self.budgets).await {
            tracing::warn!(%error, "what clients have spent is not saved");
        }
        Ok(())
    }

    fn app(&self, address: SocketAddr) -> Result<App, SetupError> {
        let settings = &self.settings;
        let (access, origins) = settings.access.guards(address)?;
        if self.bench.is_some() {
            settings.access.check_workbench(address)?;
        }
        let drain = Drain::default();
        let guard = Guard::from(Guards {
            hosts: Hosts::new(address.ip(), &settings.access.hosts),
            origins,
            access,
            rates: Rates::new(settings.requests_per_second, settings.request_burst),
            messages: Rates::new(settings.requests_per_second, settings.request_burst),
            feedback: Rates::new(FEEDBACK_PER_SECOND, FEEDBACK_BURST),
            slots: Slots::new(settings.max_streams_per_client, settings.max_streams, &drain),
            budgets: Arc::clone(&self.budgets),
            bodies: Bodies::new(
                settings.max_body_bytes,
                settings.max_body_bytes_total,
                settings.body_timeout,
            ),
            drain,
            metrics: self.metrics.clone(),
            is_public: pages::is_public,
            refusal: vendor_api::refusal,
            failure: vendor_api::failure,
        });
        Ok(App::new(Shared {
            settings: settings.clone(),
            runtime: self.runtime.clone(),
            sessions: self.sessions.clone(),
            guard,
            media: self.media.clone(),
            offload: Offload::new(),
            checks: ModuleChecks::default(),
            records: self.records.clone(),
            bench: self.bench.clone().filter(|_| !self.only_mcp),
            only_mcp: self.only_mcp,
            openapi: routes::openapi(),
            paths: routes::paths(self.bench.is_some()),
        }))
    }
}

/// The maximum number of labels of one client per second: a person gives fewer, and each reads the log.
const FEEDBACK_PER_SECOND: u32 = 10;
/// The maximum burst of labels of a client that was idle.
const FEEDBACK_BURST: u32 = 50;

/// Saves what clients have spent while the server runs: a server that is killed forgets the last second.
async fn save_each_second(budgets: &Arc<ClientBudgets>) -> Infallible {
    let mut can_be_saved = true;
    loop {
        sleep(Duration::from_secs(1)).await;
        let is_saved = save(budgets).await.inspect_err(|error| {
            if can_be_saved {
                tracing::warn!(%error, "what clients have spent is not saved");
            }
        });
        can_be_saved = is_saved.is_ok();
    }
}

async fn save(budgets: &Arc<ClientBudgets>) -> io::Result<()> {
    let budgets = Arc::clone(budgets);
    tokio::task::spawn_blocking(move || budgets.save()).await?
}

// Connections: accepting them, their limits, and shutdown.

/// The time that the last bytes have to reach their clients after all runs were stopped.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after the system refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// hyper's minimum for the size of the headers, in bytes.
const MIN_HEADER_BYTES: usize = 8 * 1024;

/// How many connections may wait until they are accepted, unless the system allows fewer.
///
/// A client whose connection finds the queue full tries again after 1, 3, 7, 15 and 31 seconds.
const BACKLOG: u32 = 4096;

/// Returns a listener for a server, whose queue takes bursts of connections.
///
/// # Errors
/// Fails as a bind does: the port is in use, or the address is not one of this machine. Needs the runtime of tokio.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows, this would let several servers have the same port.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves HTTP/1.1 until `shutdown`, and then for the delay of the settings, so that no request is lost while a load balancer still
/// sends some: each response closes its connection. Then stops accepting connections, closes idle ones, waits for running
/// requests as long as the settings allow, calls `stop` for the rest, and waits until the last responses are sent.
///
/// HTTP/2 is not supported: browsers do not use it without TLS, a proxy speaks HTTP/1.1 to its backend, and a stalled
/// HTTP/2 stream cannot be detected at its socket.
async fn serve_until(
    listener: TcpListener,
    router: Router,
    guard: Guard,
    settings: &ServerSettings,
    shutdown: impl Future<Output = ()>,
    stop: impl FnOnce(),
) {
    let mut connections = Connections::new(router, guard.clone(), settings);
    tokio::select! {
        () = connections.accept_from(&listener) => {}
        () = shutdown => {}
    }
    guard.drain.announced.cancel();
    let _ = timeout(settings.drain_delay, connections.accept_from(&listener)).await;
    drop(listener);
    guard.drain.begun.cancel();
    // Idle connections close now. A request that has arrived on one is still served.
    connections.closing.cancel();
    let _ = timeout(settings.shutdown_timeout, guard.drain.idle()).await;
    guard.drain.over.cancel();
    stop();
    let _ = timeout(FLUSH_TIMEOUT, guard.drain.idle()).await;
    connections.close().await;
}

/// The open connections of a server.
struct Connections {
    router: Router,
    guard: Guard,
    http: http1::Builder,
    write_timeout: Duration,
    permits: Arc<Semaphore>,
    /// Cancelled when connections take no further request.
    closing: CancellationToken,
    open: JoinSet<()>,
}

impl Connections {
    fn new(router: Router, guard: Guard, settings: &ServerSettings) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(settings.header_timeout)
            .max_buf_size(settings.max_header_bytes.max(MIN_HEADER_BYTES));
        Self {
            router,
            guard,
            http,
            write_timeout: settings.write_timeout,
            permits: Arc::new(Semaphore::new(settings.max_connections.clamp(1, Semaphore::MAX_PERMITS))),
            closing: CancellationToken::new(),
            open: JoinSet::new(),
        }
    }

    /// Accepts connections, at most as many as there are permits. Further ones wait in the queue of the system.
    async fn accept_from(&mut self, listener: &TcpListener) {
        loop {
            tokio::select! {
                accepted = accept(listener, &self.permits) => match accepted {
                    Ok((stream, peer, permit)) => self.open(stream, peer, permit),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        // Without open files left, `accept` fails again at once.
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = self.open.join_next() => {}
            }
        }
    }

    fn open(&mut self, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        // Chunks are small and must be sent at once.
        let _ = stream.set_nodelay(true);
        let metrics = self.guard.metrics.clone();
        let stream = WriteTimeout::new(stream, self.write_timeout, move || metrics.http.write_timeout())
            .with_permit(permit);
        let http = self.http.clone();
        let router = self.router.clone();
        self.open.spawn(connection(http, stream, router, peer, self.closing.clone()));
    }

    /// Waits for pending responses, and then closes the rest.
    async fn close(mut self) {
        let all = async { while self.open.join_next().await.is_some() {} };
        let _ = timeout(FLUSH_TIMEOUT, all).await;
        self.open.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

async fn connection(
    http: http1::Builder,
    stream: WriteTimeout<TcpStream>,
    router: Router,
    peer: SocketAddr,
    closing: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    });
    // The upgrade of a WebSocket continues in a task of its own, which holds the stream and its permit.
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error = &error as &dyn Error, "connection interrupted");
    }
}

/// A connection whose writes fail once the peer has read nothing for too long.
///
/// It wraps the socket, below every transport, so that a client that does not read cannot hold a stream, a response or a
/// WebSocket for longer.
pub(crate) struct WriteTimeout<IO> {
    io: IO,
    limit: Duration,
    /// The timer of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Called once when a write times out.
    on_timeout: Option<Box<dyn FnOnce() + Send>>,
    /// The permit of the connection, held through an upgrade until it closes.
    _permit: Option<OwnedSemaphorePermit>,
}

impl<IO: AsyncWrite + Unpin> WriteTimeout<IO> {
    /// Wraps a connection. `on_timeout` is called when a write waits for longer than `limit`.
    pub(crate) fn new(io: IO, limit: Duration, on_timeout: impl FnOnce() + Send + 'static) -> Self {
        Self { io, limit, waiting: None, on_timeout: Some(Box::new(on_timeout)), _permit: None }
    }

    /// Holds this permit until the connection closes.
    pub(crate) fn with_permit(self, permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: Some(permit), ..self }
    }

    /// Writes, and fails when the write has waited for too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut IO>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = write(Pin::new(&mut self.io), context) {
            self.waiting = None;
            return Poll::Ready(done);
        }
        let limit = self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(limit)));
        if waiting.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        if let Some(on_timeout) = self.on_timeout.take() {
            on_timeout();
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "write timeout: the client does not read")))
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for WriteTimeout<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |io, context| io.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.timed(context, |io, context| io.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, |io, context| io.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timed(context, |io, context| io.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod write_timeout_tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        time::advance,
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn stalling() -> (WriteTimeout<DuplexStream>, DuplexStream, Arc<AtomicUsize>) {
        let (server, client) = duplex(4);
        let timeouts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&timeouts);
        let count = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (WriteTimeout::new(server, LIMIT, count), client, timeouts)
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_nothing_times_out() {
        let (mut server, _client, timeouts) = stalling();
        let error = server.write_all(b"12345").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(timeouts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_slowly_stays_connected() {
        let (mut server, mut client, timeouts) = stalling();
        let writing = async {
            server.write_all(b"123456789012").await.unwrap();
            drop(server);
        };
        let reading = async {
            let mut read = Vec::new();
            for _ in 0..3 {
                advance(LIMIT - Duration::from_millis(1)).await;
                let mut chunk = [0; 4];
                client.read_exact(&mut chunk).await.unwrap();
                read.extend(chunk);
            }
            read
        };
        let (read, ()) = tokio::join!(reading, writing);
        assert_eq!(read, b"123456789012");
        assert_eq!(timeouts.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_does_not_time_out() {
        let (mut server, mut client, _) = stalling();
        server.write_all(b"1234").await.unwrap();
        advance(LIMIT * 10).await;
        client.read_exact(&mut [0; 4]).await.unwrap();
        server.write_all(b"5678").await.unwrap();
    }
}
