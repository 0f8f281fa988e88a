//! Connections: accepting them, their limits, and shutdown.

use std::{error::Error, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::{
    ServerSettings,
    guard::{Guard, WriteTimeout},
};

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

/// Serves HTTP/1.1 until `shutdown`. Then stops accepting connections, waits for running requests as long as the settings
/// allow, calls `stop` for the rest, and waits until the last responses are sent.
///
/// HTTP/2 is not supported: browsers do not use it without TLS, a proxy speaks HTTP/1.1 to its backend, and a stalled
/// HTTP/2 stream cannot be detected at its socket.
pub(crate) async fn serve(
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
    drop(listener);
    guard.drain.begun.cancel();
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
    /// Cancelled when connections must not take another request.
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
        let (http, router) = (self.http.clone(), self.router.clone());
        self.open.spawn(connection(http, stream, router, peer, self.closing.clone()));
    }

    /// Closes idle connections, waits for pending responses, and then closes the rest.
    async fn close(mut self) {
        self.closing.cancel();
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

#[cfg(test)]
mod tests;
